/** A turn's changes as lines for a terminal. */
import type { Change, Counts, ShowResponse } from "../../daemon/api.js";
import type { Colors } from "../output.js";
import { foldPaths } from "./fold.js";
import { printable } from "./names.js";
import { count, formatSize } from "./quantities.js";

/** Counts per kind of change; a change of kind (T) counts as modified. */
export function countChanges(changes: Change[]): Counts {
	const counts: Counts = { added: 0, modified: 0, deleted: 0, renamed: 0 };
	for (const { status } of changes) {
		if (status === "A") counts.added++;
		else if (status === "D") counts.deleted++;
		else if (status === "R") counts.renamed++;
		else counts.modified++;
	}
	return counts;
}

export function totalOf(counts: Counts): number {
	return counts.added + counts.modified + counts.deleted + counts.renamed;
}

/** `2 added, 1 deleted`; "" for none. */
export function describeCounts(counts: Counts): string {
	return (["added", "modified", "deleted", "renamed"] as const)
		.filter((word) => counts[word] > 0)
		.map((word) => `${counts[word]} ${word}`)
		.join(", ");
}

/** The path as listed: folders end in a slash. */
export function changePath(change: Change): string {
	const path = change.path === "" ? "./" : `${printable(change.path)}${change.kind === "directory" ? "/" : ""}`;
	return change.from === undefined ? path : `${printable(change.from)} → ${path}`;
}

function describeSides({ before, after }: Change): string {
	const words: string[] = [];
	if (before?.size != null && after?.size != null && before.size !== after.size)
		words.push(`${formatSize(before.size)} → ${formatSize(after.size)}`);
	else if (after?.size != null || before?.size != null) words.push(formatSize(after?.size ?? before?.size ?? 0));
	if (before && after && before.permissions !== after.permissions)
		words.push(`${before.permissions} → ${after.permissions}`);
	return words.join(", ");
}

const STATUS_COLORS = { A: "green", M: "yellow", D: "red", R: "cyan", T: "magenta" } as const;

export function colorStatus(status: Change["status"], colors: Colors): string {
	return colors[STATUS_COLORS[status]](status);
}

/** `M src/a.ts  1.2 kB → 1.3 kB` */
export function renderChange(change: Change, colors: Colors): string {
	const sides = change.kind === "directory" ? "" : describeSides(change);
	const skipped = change.skipped === undefined ? "" : colors.red(`  not kept: ${printable(change.skipped)}`);
	return `${colorStatus(change.status, colors)} ${changePath(change)}${sides && colors.dim(`  ${sides}`)}${skipped}`;
}

/** As `renderChange`, a line per fold: `D docs/  and 12 inside`. */
export function renderFolded(changes: Change[], colors: Colors): string[] {
	const sameFate = (top: Change, inside: Change) =>
		top.kind === "directory" && top.status === inside.status && (top.status === "A" || top.status === "D");
	return foldPaths(changes, sameFate).map(({ path, item, inside }) => {
		if (item === null) return `${colors.dim("·")} ${printable(path)}/  ${describeCounts(countChanges(inside))}`;
		const rest = inside.length === 0 ? "" : colors.dim(`  and ${inside.length} inside`);
		return `${renderChange(item, colors)}${rest}`;
	});
}

export interface ChangeGroup {
	/** null: which process it was is not known. */
	command: string | null;
	changes: Change[];
}

/** Changes by the command that made them first, in the order given. */
export function groupByCommand(changes: Change[]): ChangeGroup[] {
	const groups = new Map<string | null, Change[]>();
	for (const change of changes) {
		const command = change.by?.command ?? null;
		const group = groups.get(command);
		if (group) group.push(change);
		else groups.set(command, [change]);
	}
	return [...groups].map(([command, list]) => ({ command, changes: list }));
}

/** `12 changes (2 added, 10 modified)` */
export function summarize(changes: Change[]): string {
	return `${count(changes.length, "change")} (${describeCounts(countChanges(changes))})`;
}

const MAX_NOT_KEPT = 10;

/** What could not be captured, and so can't be put back: never left unsaid. */
export function renderNotKept({ skipped }: ShowResponse, colors: Colors): string[] {
	if (skipped.length === 0) return [];
	const lines = [colors.red(`${count(skipped.length, "path")} can't be put back, the earlier state was not kept:`)];
	for (const { path, reason } of skipped.slice(0, MAX_NOT_KEPT))
		lines.push(`  ${printable(path)}: ${printable(reason)}`);
	if (skipped.length > MAX_NOT_KEPT) lines.push(`  … ${skipped.length - MAX_NOT_KEPT} more`);
	return lines;
}
