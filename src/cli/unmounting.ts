/** The end of a mount that `run` or a mount in the foreground made. */
import type { MountResponse } from "../daemon/api.js";
import type { DaemonClient } from "../daemon/client.js";
import { TurnfsError } from "../errors.js";
import { remark } from "./output.js";

/**
 * Unmounts what we mounted, never a mount that somebody has made since. Programs that still run inside keep it mounted: the daemon unmounts when the last of them has gone.
 * @param mount as the daemon answered when we mounted
 * @param token of our own hold, which is no reason to stay mounted
 * @returns the exit status
 */
export async function unmountOrLeave(client: DaemonClient, mount: MountResponse, token: string): Promise<number> {
	const { keeper } = mount.pids;
	try {
		await client.umount({ token, ...(keeper === null ? {} : { keeper }) });
		return 0;
	} catch (error) {
		if (!(error instanceof TurnfsError)) throw error;
		if (error.code === "TURNFS_NOT_MOUNTED") return reportEnd(client);
		if (error.code !== "TURNFS_MOUNT_BUSY") throw error;
		remark(`turnfs: ${error.message} It stays mounted until they have gone.`);
		return 0;
	}
}

/** Says why a mount went by itself. @returns 0 when somebody unmounted it, 1 when it failed */
export async function reportEnd(client: DaemonClient): Promise<number> {
	const { problems } = await client.status();
	for (const { message, hint, code } of problems) remark(`turnfs: ${message} ${hint} (${code})`);
	return problems.length === 0 ? 0 : 1;
}
