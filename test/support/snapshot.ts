/**
 * What a tree is, and in words how two differ. The reading is done by snapshot_tree.py, which shares no code with the
 * product, so that a fault in the product can't hide itself.
 */
import { fileURLToPath } from "node:url";
import { runCommand, type UserIds } from "./commands.js";

export interface SnapshotEntry {
	kind: "file" | "dir" | "symlink" | "fifo" | "socket" | "char" | "block";
	/** Permission bits with set-uid, set-gid and sticky. */
	mode: number;
	uid: number;
	gid: number;
	mtimeNs: string;
	ctimeNs: string;
	ino: string;
	dev: number;
	nlink: number;
	/** Files only. */
	size?: number;
	blocks?: number;
	/** Hash of the bytes, the same for a hole and for zeros. */
	hash?: string;
	/** [offset, end) of each run of data. */
	extents?: [number, number][];
	/** Symlinks only; latin1. */
	target?: string;
	/** Devices only. */
	rdev?: number;
	/** Name → value, both latin1; ACLs are among them. */
	xattrs?: Record<string, string>;
	/** The errno that kept us from reading it. */
	unreadable?: string;
}

/** Paths are latin1 strings (one char a byte), relative to the folder; the folder itself is ".". */
export type Snapshot = Map<string, SnapshotEntry>;

export interface SnapshotOptions {
	/** Read as this user: a mount of an ordinary user is closed to root. */
	as?: UserIds | undefined;
	/** Names left out at the top of the folder. */
	exclude?: string[];
}

const script = fileURLToPath(new URL("snapshot_tree.py", import.meta.url));

/** Reads the whole tree at `dir`, which may be the mount or the folder behind it. */
export async function snapshotTree(dir: string, options: SnapshotOptions = {}): Promise<Snapshot> {
	const excludes = (options.exclude ?? []).flatMap((name) => ["--exclude", name]);
	const done = await runCommand(["/usr/bin/python3", "-I", script, dir, ...excludes], { as: options.as, cwd: "/" });
	return new Map(Object.entries(JSON.parse(done.stdout) as Record<string, SnapshotEntry>));
}

export interface CompareOptions {
	/**
	 * "same": every path has the inode number it had. "ignore" (default): inode numbers say nothing.
	 * A function gets the path and tells whether the number must be the same there.
	 */
	inodes?: "same" | "ignore" | ((path: string) => boolean);
	/** Link counts; ignored by default because behind the mount the store may hold a link of a file. */
	linkCounts?: "same" | "ignore";
	/** "ignore" when trees on different filesystems are compared. */
	holes?: "same" | "ignore";
	mtimes?: "same" | "ignore";
	/** Paths, with all that is below them, that are not compared. */
	exclude?: string[];
}

/** What is different, one sentence each, sorted by path; empty when the trees are equal. */
export function compareSnapshots(expected: Snapshot, actual: Snapshot, options: CompareOptions = {}): string[] {
	const excluded = (path: string) => (options.exclude ?? []).some((e) => path === e || path.startsWith(`${e}/`));
	const differences: string[] = [];
	const paths = [...new Set([...expected.keys(), ...actual.keys()])].filter((p) => !excluded(p)).sort();
	for (const path of paths) {
		const before = expected.get(path);
		const after = actual.get(path);
		if (!before || !after) {
			differences.push(
				before ? `${show(path)}: a ${before.kind} is missing` : `${show(path)}: a ${after?.kind} too many`,
			);
			continue;
		}
		differences.push(...compareEntries(before, after, path, options).map((words) => `${show(path)}: ${words}`));
	}
	return [...differences, ...compareLinkGroups(expected, actual, excluded)];
}

/** Fails with the list of differences, cut after 40 lines. */
export function expectSameTree(expected: Snapshot, actual: Snapshot, options: CompareOptions = {}): void {
	const differences = compareSnapshots(expected, actual, options);
	if (differences.length === 0) return;
	const shown = differences.slice(0, 40);
	if (differences.length > shown.length) shown.push(`… and ${differences.length - shown.length} more`);
	throw new Error(`the trees differ (${differences.length}):\n  ${shown.join("\n  ")}`);
}

function compareEntries(before: SnapshotEntry, after: SnapshotEntry, path: string, options: CompareOptions): string[] {
	if (before.kind !== after.kind) return [`was a ${before.kind}, is a ${after.kind}`];
	const words: string[] = [];
	const differ = (what: string, was: unknown, is: unknown) => {
		if (was !== is) words.push(`${what} was ${was}, is ${is}`);
	};
	differ("readability", before.unreadable ?? "readable", after.unreadable ?? "readable");
	// The mode of a symlink has no meaning on Linux, and can't be set.
	if (before.kind !== "symlink") differ("mode", before.mode.toString(8), after.mode.toString(8));
	differ("uid", before.uid, after.uid);
	differ("gid", before.gid, after.gid);
	if (options.mtimes !== "ignore") differ("mtime", before.mtimeNs, after.mtimeNs);
	differ("size", before.size, after.size);
	if (before.hash !== after.hash) words.push("has other bytes");
	if (options.holes !== "ignore") {
		differ("data extents", JSON.stringify(before.extents), JSON.stringify(after.extents));
	}
	differ("symlink target", before.target, after.target);
	differ("device number", before.rdev, after.rdev);
	words.push(...compareXattrs(before.xattrs ?? {}, after.xattrs ?? {}));
	const inodes = options.inodes ?? "ignore";
	if (inodes === "same" || (typeof inodes === "function" && inodes(path))) {
		differ("inode number", before.ino, after.ino);
	}
	if (options.linkCounts === "same") differ("link count", before.nlink, after.nlink);
	return words;
}

function compareXattrs(before: Record<string, string>, after: Record<string, string>): string[] {
	const words: string[] = [];
	for (const name of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
		if (before[name] === after[name]) continue;
		const was = before[name] === undefined ? "absent" : JSON.stringify(before[name]);
		const is = after[name] === undefined ? "absent" : JSON.stringify(after[name]);
		words.push(`xattr ${name} was ${was}, is ${is}`);
	}
	return words;
}

/** Each path → the first path (in order) that names the same inode. */
function linkGroups(snapshot: Snapshot, excluded: (path: string) => boolean): Map<string, string> {
	const first = new Map<string, string>();
	const groups = new Map<string, string>();
	for (const path of [...snapshot.keys()].sort()) {
		const entry = snapshot.get(path);
		if (!entry || entry.kind === "dir" || excluded(path)) continue;
		const inode = `${entry.dev}:${entry.ino}`;
		const leader = first.get(inode) ?? path;
		first.set(inode, leader);
		groups.set(path, leader);
	}
	return groups;
}

function compareLinkGroups(expected: Snapshot, actual: Snapshot, excluded: (path: string) => boolean): string[] {
	const before = linkGroups(expected, excluded);
	const after = linkGroups(actual, excluded);
	const differences: string[] = [];
	for (const [path, leader] of before) {
		const now = after.get(path);
		if (now === undefined || now === leader) continue;
		const words = (group: string) => (group === path ? "on its own" : `a hard link of ${show(group)}`);
		differences.push(`${show(path)}: was ${words(leader)}, is ${words(now)}`);
	}
	return differences;
}

/** Bytes that are no printable ASCII become \xNN. */
function show(path: string): string {
	return path.replace(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
