/**
 * Whole trees and how a rewind must leave them. What a tree is and how two differ is ../support/snapshot's; here is added
 * which objects must be the *same* ones after a rewind.
 */
import { type CompareOptions, compareSnapshots, type SnapshotEntry } from "../support/snapshot.js";

/** Birth time, by which an object is told from a later one with its inode number. */
export interface Node extends SnapshotEntry {
	birth: string;
}

/** Paths below the folder, "." for itself; latin1, because names are bytes. */
export type Tree = Map<string, Node>;

export interface Comparison {
	/**
	 * The tree that the operation started from. A folder that was not there any more had to be made again, with a new inode
	 * number; one that was there must be the same one. Files are always the same ones: removed files are kept, not copied.
	 */
	from?: Tree;
	/** Files may have been copied: where the store could not keep the file itself. */
	copies?: boolean;
	/** Paths that are left out: a program was at them meanwhile. */
	except?: string[];
	mtimes?: "ignore";
	/** As seen through the mount; behind it the store's own links count too. */
	linkCounts?: "same";
	holes?: "ignore";
}

function identity(node: Node): string {
	return `${node.ino} born ${node.birth}`;
}

/** One sentence per difference; none when the trees are the same. */
export function differences(expected: Tree, actual: Tree, options: Comparison = {}): string[] {
	const compare: CompareOptions = {};
	if (options.except) compare.exclude = options.except;
	if (options.mtimes) compare.mtimes = options.mtimes;
	if (options.linkCounts) compare.linkCounts = options.linkCounts;
	if (options.holes) compare.holes = options.holes;
	const found = compareSnapshots(expected, actual, compare);
	if (options.from === undefined) return found;
	const folders = new Set([...options.from.values()].filter((node) => node.kind === "dir").map(identity));
	for (const [path, want] of expected) {
		const have = actual.get(path);
		if (have === undefined || have.kind !== want.kind || options.except?.includes(path)) continue;
		const mustBeIt = want.kind === "dir" ? folders.has(identity(want)) : !options.copies;
		if (mustBeIt && identity(want) !== identity(have))
			found.push(`${JSON.stringify(path)}: is another ${want.kind} (inode ${identity(have)}, not ${identity(want)})`);
	}
	return found;
}
