import type { ShowResponse } from "../../daemon/api.js";
import type { Colors } from "../output.js";
import { groupByCommand, renderChange, renderNotKept, summarize } from "./changes.js";
import { printable } from "./names.js";
import { formatAge, formatDuration } from "./quantities.js";

export function renderShow(shown: ShowResponse, colors: Colors): string {
	const label = shown.label === null ? "" : `  ${printable(shown.label)}`;
	const length = shown.end === null ? "" : `, took ${formatDuration(shown.begin, shown.end)}`;
	const lines = [
		`${colors.bold(`turn ${shown.turn}`)}${label}`,
		colors.dim(`${shown.state}, begun ${formatAge(shown.begin)}${length}`),
	];
	for (const p of shown.behind)
		lines.push(
			colors.yellow(`${printable(p.comm)} (pid ${p.pid}) stood behind the mount: what it changed is not here`),
		);
	lines.push(...renderNotKept(shown, colors));
	if (shown.changes.length === 0) return [...lines, "Nothing was changed."].join("\n");
	lines.push(summarize(shown.changes));
	for (const group of groupByCommand(shown.changes)) {
		lines.push("", colors.bold(group.command === null ? "(process not known)" : printable(group.command)));
		for (const change of group.changes) lines.push(`  ${renderChange(change, colors)}`);
	}
	return lines.join("\n");
}
