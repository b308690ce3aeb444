import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { readMounts, turnfsMounts } from "../../project/mount-table.js";
import { type Mounted, mountProject, warnBehind } from "../connect.js";
import { addMountOptions, readMountOptions } from "../mount-options.js";
import { say, sayJson } from "../output.js";
import { printable } from "../render/names.js";
import { reportEnd, unmountOrLeave } from "../unmounting.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addMountOptions(args)
			.usage("$0 mount [options]\n\nMount the project, so that changes in it are captured.")
			.option("at", { type: "string", requiresArg: true, describe: "mount there instead of over the project itself" })
			.option("foreground", { type: "boolean", default: false, describe: "stay until Ctrl-C, then unmount" }),
	examples: [
		["mount", "over the folder itself; shells that stand in it need `cd .`"],
		["mount --at /tmp/view", "the project stays plain, the view captures"],
		["mount --foreground", "for service managers: unmounts when it is ended"],
	],
	async run(args, context) {
		const mounted = await mountProject(context.dir, { ...readMountOptions(args), at: args.at, ifNeeded: false });
		try {
			if (context.json) sayJson(mounted.mount);
			else say(`${printable(mounted.place.project)} is mounted at ${printable(mounted.mount.mountpoint)}.`);
			warnBehind(mounted.mount.behind);
			return args.foreground ? await stayMounted(mounted) : 0;
		} finally {
			await mounted.client.close();
		}
	},
});

/** How often we look whether the mount is still there. */
const LOOK_MS = 500;

/**
 * Holds the mount until somebody ends us or takes it away.
 * @returns the exit status: 1 when the engine failed
 */
async function stayMounted({ client, mount }: Mounted): Promise<number> {
	const token = randomBytes(16).toString("hex");
	const hold = await client.hold({ token, pid: process.pid, keeper: mount.pids.keeper, unmount: true });
	let told = false;
	for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => (told = true));
	while (!told && isMounted(mount.mountpoint)) await sleep(LOOK_MS);
	const status = isMounted(mount.mountpoint) ? await unmountOrLeave(client, mount, token) : await reportEnd(client);
	await hold.close();
	return status;
}

function isMounted(mountpoint: string): boolean {
	return turnfsMounts(readMounts()).some((entry) => entry.at === mountpoint);
}
