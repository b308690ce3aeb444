/**
 * Two trees compared by all that the promise of exactness names. A tree comes from ../support/snapshot_tree.py (by way of
 * ../property/worker.py, which adds birth times); the differences are sentences, so that a failed test says at once which
 * file is wrong in what.
 */
export interface Node {
	kind: "file" | "dir" | "symlink" | "fifo" | "socket" | "char" | "block";
	mode: number;
	uid: number;
	gid: number;
	mtimeNs: string;
	ctimeNs: string;
	ino: string;
	birth: string;
	nlink: number;
	xattrs?: Record<string, string>;
	size?: number;
	/** The runs of data between the holes. */
	extents?: [number, number][];
	hash?: string;
	target?: string;
	rdev?: number;
	/** The errno with which this user can't look into it. */
	unreadable?: string;
	/** The least name of its hard-link group; its own when it is alone. */
	joined?: string;
}

/** Paths below the folder, "." for itself; latin1, because names are bytes. */
export type Tree = Map<string, Node>;

/** The tree out of what the worker answered, with its hard-link groups found. */
export function readTree(json: Record<string, Node>): Tree {
	const tree: Tree = new Map(Object.entries(json));
	const least = new Map<string, string>();
	for (const [path, node] of tree) {
		const known = least.get(node.ino);
		if (known === undefined || path < known) least.set(node.ino, path);
	}
	for (const node of tree.values()) if (node.kind !== "dir") node.joined = least.get(node.ino) ?? "";
	return tree;
}

export interface Comparison {
	/**
	 * The tree that the operation started from. A folder that was not there any more had to be made again, with a new inode
	 * number; one that was there must be the same one. Files are always the same ones: removed files are kept, not copied.
	 */
	from?: Tree;
	/** What an ordinary user can't give back: owners and inode numbers of other users' files. */
	userCan?: boolean;
	/** Paths whose mtime may differ: a program was at them meanwhile. */
	ignoreTimesOf?: string[];
	/** The number of names, which counts the store's own when one looks behind the mount. */
	links?: boolean;
	/** Inode and birth time as seen through the mount are not those of the folder behind it on every filesystem. */
	ignoreIdentity?: boolean;
}

function shown(value: unknown): string {
	return value === undefined ? "nothing" : JSON.stringify(value);
}

/** One sentence per difference; none when the trees are the same. */
export function differences(expected: Tree, actual: Tree, options: Comparison = {}): string[] {
	const found: string[] = [];
	const foldersOfBefore = new Set<string>();
	for (const node of options.from?.values() ?? [])
		if (node.kind === "dir") foldersOfBefore.add(`${node.ino} ${node.birth}`);
	for (const [path, want] of expected) {
		const name = JSON.stringify(path);
		const have = actual.get(path);
		if (have === undefined) {
			found.push(`${name} is missing (a ${want.kind})`);
			continue;
		}
		const fields: (keyof Node)[] = ["kind", "mode", "mtimeNs", "xattrs", "joined", "size", "extents", "hash"];
		fields.push("target", "rdev", "unreadable");
		if (!options.userCan) fields.push("uid", "gid");
		if (options.links) fields.push("nlink");
		const sameOne = want.kind === "dir" ? foldersOfBefore.has(`${want.ino} ${want.birth}`) : !options.userCan;
		if (options.from !== undefined && sameOne && !options.ignoreIdentity) fields.push("ino", "birth");
		for (const field of fields) {
			if (field === "mtimeNs" && options.ignoreTimesOf?.includes(path)) continue;
			const [a, b] = [shown(want[field]), shown(have[field])];
			if (a !== b) found.push(`${name}: ${field} should be ${a} and is ${b}`);
		}
	}
	for (const [path, node] of actual)
		if (!expected.has(path)) found.push(`${JSON.stringify(path)} should not be there (a ${node.kind})`);
	return found;
}
