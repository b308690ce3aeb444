/** Rewinds that a crash has interrupted are finished: at the daemon's start, and when an engine has died under one. */
import { TurnfsError } from "../errors.js";
import { resumeRewinds } from "../rewind/resume.js";
import type { ProjectDaemon } from "./project-daemon.js";

/** What keeps a rewind from being finished is shown, and keeps nothing else from working. Under the project's lock. */
export async function finishInterruptedRewinds(daemon: ProjectDaemon): Promise<void> {
	try {
		for (const { entry, failed } of await resumeRewinds(daemon)) {
			daemon.note(`finished the ${entry.kind} of turn ${entry.turn}; ${failed.length} paths failed`);
		}
	} catch (error) {
		daemon.problems.report(TurnfsError.from(error, "TURNFS_REWIND_FAILED"));
	}
	await daemon.endTemporaryMount();
}
