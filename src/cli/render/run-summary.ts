import type { ShowResponse } from "../../daemon/api.js";
import { colorsFor, STDERR } from "../output.js";
import { groupByCommand, renderFolded, renderNotKept, summarize } from "./changes.js";
import { suggest } from "./commands.js";
import { shortCommand } from "./names.js";
import { count } from "./quantities.js";

const MAX_GROUPS = 8;
const MAX_PATHS = 5;

/** What `run` says on stderr when its turn has ended: what changed, by which command, and how to undo it. */
export function renderRunSummary(shown: ShowResponse, folderOption: string | undefined): string {
	const colors = colorsFor(STDERR);
	const { turn, changes } = shown;
	if (shown.state === "rewound")
		return `turnfs: turn ${turn} was rewound meanwhile; \`turnfs log\` lists what came after.`;
	if (changes.length === 0 && shown.skipped.length === 0) return `turnfs: turn ${turn} changed nothing.`;
	const lines = [`turnfs: turn ${turn}: ${summarize(changes)}`];
	const groups = groupByCommand(changes);
	let shownCount = 0;
	for (const { command, changes: list } of groups.slice(0, MAX_GROUPS)) {
		lines.push(`  ${colors.bold(command === null ? "(process not known)" : shortCommand(command, 76))}`);
		const rows = renderFolded(list, colors);
		for (const row of rows.slice(0, MAX_PATHS)) lines.push(`    ${row}`);
		if (rows.length > MAX_PATHS) lines.push(colors.dim(`    … ${rows.length - MAX_PATHS} more`));
		shownCount += list.length;
	}
	if (groups.length > MAX_GROUPS)
		lines.push(
			colors.dim(
				`  … ${count(changes.length - shownCount, "more change")} by ${count(groups.length - MAX_GROUPS, "other command")}`,
			),
		);
	lines.push(...renderNotKept(shown, colors).map((line) => `  ${line}`));
	lines.push(`  Undo it: ${suggest("undo", folderOption)}   All of it: ${suggest(`show ${turn}`, folderOption)}`);
	return lines.join("\n");
}
