import type { PathJson, PathReasonJson, RewindResponse } from "../../daemon/api.js";
import type { Colors } from "../output.js";
import { foldPaths } from "./fold.js";
import { printable } from "./names.js";
import { count } from "./quantities.js";

const MAX_LISTED = 20;

function list<T>(title: string, paths: T[], line: (path: T) => string): string[] {
	if (paths.length === 0) return [];
	const lines = [title, ...paths.slice(0, MAX_LISTED).map((path) => `  ${line(path)}`)];
	if (paths.length > MAX_LISTED) lines.push(`  … ${paths.length - MAX_LISTED} more (all with --json)`);
	return lines;
}

/** The project folder itself has the empty path. */
const shownPath = (path: string) => (path === "" ? "." : printable(path));

function listFolded(title: string, paths: PathJson[]): string[] {
	return list(title, foldPaths(paths), ({ path, item, inside }) => {
		if (inside.length === 0) return shownPath(path);
		return item === null
			? `${printable(path)}/  ${count(inside.length, "path")} inside`
			: `${printable(path)}/  and ${inside.length} inside`;
	});
}

const withReason = ({ path, reason }: PathReasonJson) => `${shownPath(path)}: ${printable(reason)}`;

/** The turns that a rewind undoes, for a sentence: `turn 3`, `turns 3, 4 and 5`, `turns 3 to 9`. */
export function nameTurns(turns: number[]): string {
	const sorted = [...turns].sort((a, b) => a - b);
	const [first, last] = [sorted[0], sorted.at(-1)];
	if (sorted.length === 1) return `turn ${first}`;
	if (sorted.length === 2) return `turns ${first} and ${last}`;
	return sorted.length === (last ?? 0) - (first ?? 0) + 1
		? `turns ${first} to ${last}`
		: `turns ${sorted.slice(0, -1).join(", ")} and ${last}`;
}

/**
 * What was done, or would be done, path by path.
 * @param planShown the paths were listed a moment ago, so only what went otherwise is
 */
export function renderRewind(
	result: RewindResponse,
	verb: "rewind" | "redo",
	colors: Colors,
	planShown = false,
): string {
	const { applied, restored, deleted, conflicts, skipped, failed } = result;
	const would = applied ? "" : "would be ";
	const what = verb === "rewind" ? `undoing ${nameTurns(result.turns)}` : `bringing back ${nameTurns(result.turns)}`;
	const lines = [
		colors.bold(
			`${applied ? `${verb} done` : `${verb} plan`}: ${what}, ${count(restored.length, "path")} ${would}put back, ${deleted.length} ${would}deleted`,
		),
	];
	if (!planShown) {
		lines.push(...listFolded(colors.green(`${would}put back:`), restored));
		lines.push(...listFolded(colors.red(`${would}deleted:`), deleted));
	}
	lines.push(...list(colors.yellow("changed by somebody else since:"), conflicts, withReason));
	lines.push(...list(colors.yellow("not kept, so it stays as it is:"), skipped, withReason));
	lines.push(...list(colors.red("failed:"), failed, withReason));
	return lines.join("\n");
}
