import type { LogEntry, StatusResponse } from "../../daemon/api.js";
import { findProject } from "../../project/discover.js";
import { withProject } from "../connect.js";
import { colorsFor, STDOUT, say, sayJson } from "../output.js";
import { suggest } from "../render/commands.js";
import { renderLog } from "../render/log.js";
import { printable } from "../render/names.js";
import { renderStatus } from "../render/status.js";
import { defineVerb } from "../verb.js";

const LAST_TURNS = 5;
/** Far enough back, past gaps and times between turns, to find a turn or rewind. */
const LAST_SPANS = 10;

/** What somebody who looks at this state most likely wants to do next. */
function nextCommand(status: StatusResponse, history: LogEntry[], folderOption: string | undefined): string {
	if (status.turn !== null) return `End the open turn: ${suggest("turn end", folderOption)}`;
	const last = history.find(({ spanKind }) => spanKind === "turn" || spanKind === "rewind");
	if (last?.spanKind === "rewind") return `Undo the last rewind: ${suggest("redo", folderOption)}`;
	if (last) return `Undo turn ${last.turn}: ${suggest("undo", folderOption)}`;
	return `Run a command as a turn: ${suggest("run -- COMMAND", folderOption)}`;
}

export const verb = defineVerb({
	options: (args) => args,
	examples: [
		["run -- npm install", "run a command as one turn"],
		["undo", "and take it back"],
	],
	async run(_args, context) {
		if (findProject(context.dir)?.store == null) {
			if (context.json) sayJson({ project: null });
			else {
				say(`${printable(context.dir)} is not in a turnfs project yet.`);
				say(
					`Run a command as its first turn: ${suggest("run -- COMMAND", context.folderOption)}   More: turnfs --help`,
				);
			}
			return 0;
		}
		return withProject(context.dir, async ({ client }) => {
			const [status, turns] = [await client.status(), await client.log({ n: LAST_TURNS })];
			const history = await client.log({ n: LAST_SPANS, all: true });
			if (context.json) sayJson({ ...status, log: turns });
			else {
				const colors = colorsFor(STDOUT);
				say(`${renderStatus(status, colors)}\n\n${renderLog(turns, colors)}`);
				say(`\n${nextCommand(status, history, context.folderOption)}`);
			}
			return 0;
		});
	},
});
