/** What rewind, undo and redo share: show the plan, ask or be told, do it, report. */
import { createInterface } from "node:readline/promises";
import type { Argv } from "yargs";
import type { RewindResponse } from "../daemon/api.js";
import type { DaemonClient } from "../daemon/client.js";
import { TurnfsError } from "../errors.js";
import { colorsFor, isInteractive, remark, STDERR, STDOUT, say, sayJson } from "./output.js";
import { suggest } from "./render/commands.js";
import { renderRewind } from "./render/rewind.js";
import { reportError } from "./report-error.js";
import type { VerbContext } from "./verb.js";

export interface RewindArguments {
	"dry-run": boolean;
	yes: boolean;
	overwrite: boolean;
}

export const REWIND_STATUSES: Record<string, string> = {
	3: "conflicts, nothing was changed",
	4: "done, but some items were skipped or failed",
};

export function addRewindOptions<T>(args: Argv<T>): Argv<T & RewindArguments> {
	return args
		.option("dry-run", { type: "boolean", default: false, describe: "only show what would be done" })
		.option("yes", { type: "boolean", default: false, describe: "don't ask" })
		.option("overwrite", {
			type: "boolean",
			default: false,
			describe: "put back what somebody else changed since, too (a redo brings their state back)",
		}) as unknown as Argv<T & RewindArguments>;
}

/**
 * One of the daemon's two calls, with `dryRun` filled in here. `plan` is what the user agreed to: `last` must not have become
 * another turn meanwhile.
 */
export type RewindCall = (
	client: DaemonClient,
	dryRun: boolean,
	plan: RewindResponse | null,
) => Promise<RewindResponse>;

/** @returns the exit status */
export async function performRewind(
	verb: "rewind" | "redo",
	client: DaemonClient,
	call: RewindCall,
	args: RewindArguments,
	context: VerbContext,
): Promise<number> {
	let plan: RewindResponse | null = null;
	if (!args["dry-run"] && !args.yes) {
		if (context.json || !isInteractive())
			throw new TurnfsError("TURNFS_CONFIRM_NEEDED", { verb: `\`turnfs ${verb}\`` });
		plan = await call(client, true, null);
		remark(renderRewind(plan, verb, colorsFor(STDERR)));
		if (isRefused(plan, args)) return refuse(plan);
		if (changesAnything(plan) && !(await confirm("Go ahead?"))) {
			remark("Nothing was changed.");
			return 1;
		}
	}
	const result = await call(client, args["dry-run"], plan);
	if (context.json) sayJson(result);
	else {
		say(renderRewind(result, verb, colorsFor(STDOUT), plan !== null));
		if (result.applied && result.redo && verb === "rewind") say(`Undo this: ${suggest("redo", context.folderOption)}`);
	}
	if (isRefused(result, args)) return refuse(result);
	return result.applied && result.skipped.length + result.failed.length > 0 ? 4 : 0;
}

function isRefused(result: RewindResponse, args: RewindArguments): boolean {
	return !result.applied && result.conflicts.length > 0 && !args.overwrite;
}

function refuse(result: RewindResponse): number {
	return reportError(new TurnfsError("TURNFS_REWIND_CONFLICT", { count: result.conflicts.length, turn: result.turn }));
}

function changesAnything(plan: RewindResponse): boolean {
	return plan.restored.length + plan.deleted.length > 0;
}

/** Asks on the terminal; anything but yes, the end of input and Ctrl-C included, is no. */
async function confirm(question: string): Promise<boolean> {
	const terminal = createInterface({ input: process.stdin, output: process.stderr });
	const abort = new AbortController();
	terminal.on("SIGINT", () => abort.abort());
	terminal.on("close", () => abort.abort());
	try {
		return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `, { signal: abort.signal })).trim());
	} catch (error) {
		if ((error as Error).name !== "AbortError") throw error;
		remark("");
		return false;
	} finally {
		terminal.close();
	}
}
