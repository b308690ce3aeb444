/** What the daemon does by itself from time to time while something is mounted. */
import { describeCause, TurnfsError } from "../errors.js";
import { listJournal } from "../store/journal-reader.js";
import { logLine } from "./log-line.js";
import type { ProjectDaemon } from "./project-daemon.js";
import { endOrphanedTurn, endTurn } from "./turns.js";

const INTERVAL_MS = 1000;
/** Looking through /proc for who stands behind the mount, in intervals. */
const BEHIND_EVERY = 5;

/** @returns stops it */
export function watchProject(daemon: ProjectDaemon): () => void {
	let beats = 0;
	const timer = setInterval(() => {
		beats++;
		// Whatever runs now is more urgent, and the next beat comes soon.
		if (!daemon.isMounted() || daemon.serial.busy) return;
		void daemon.serial
			.run(() => beat(daemon, beats))
			.catch((error) => {
				logLine(`a periodic check failed: ${describeCause(error)}`);
			});
	}, INTERVAL_MS);
	timer.unref();
	return () => clearInterval(timer);
}

async function beat(daemon: ProjectDaemon, beats: number): Promise<void> {
	await endOrphanedTurn(daemon);
	if (daemon.shouldUnmount) await unmountIfFree(daemon);
	if (!daemon.isMounted()) return;
	// The newest file is the engine's; more than one means that sealed ones wait.
	if (listJournal(daemon.store.folder).length > 1) await daemon.ingestSealed();
	if (daemon.behind.length > 0 && beats % BEHIND_EVERY === 0) await daemon.refreshBehind();
}

/** Unmounts what the last holder had mounted, as soon as nothing uses it any more. */
export async function unmountIfFree(daemon: ProjectDaemon): Promise<void> {
	if (!daemon.isMounted()) return;
	if ((await daemon.openTurn()) !== null) await endTurn(daemon, null);
	try {
		await daemon.stopMount(false);
	} catch (error) {
		if (!(error instanceof TurnfsError) || error.code !== "TURNFS_MOUNT_BUSY") throw error;
		daemon.unmountWhenIdle = true;
	}
}
