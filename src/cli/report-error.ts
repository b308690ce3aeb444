import { TurnfsError } from "../errors.js";
import { colorsFor, remark, STDERR } from "./output.js";

/**
 * Writes an error to stderr: one sentence, the way out, the code that never changes.
 * @param failureStatus what the verb exits with when turnfs itself failed (`run`: 125); wrong usage is 2 for every verb
 * @returns the exit status
 */
export function reportError(error: unknown, failureStatus?: number): number {
	const known = error instanceof TurnfsError;
	const colors = colorsFor(STDERR);
	const prefix = colors.red("turnfs:");
	if (!known) {
		// A defect of turnfs: the stack is what its report needs.
		const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
		remark(`${prefix} unexpected error, nothing more is known: ${text}`);
		return failureStatus ?? 1;
	}
	remark(`${prefix} ${error.message} ${error.hint} ${colors.dim(`(${error.code})`)}`);
	if (error.code === "TURNFS_USAGE" || error.code === "TURNFS_CONFIRM_NEEDED") return error.exitStatus;
	return failureStatus ?? error.exitStatus;
}
