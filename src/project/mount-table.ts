/**
 * The kernel's table of mounts, as this process sees it (/proc/self/mountinfo). Everything here works on strings, so that a
 * mount whose engine no longer answers can't hold a command up.
 */
import { readFileSync } from "node:fs";

/** The filesystem type under which the keeper mounts. */
export const TURNFS_TYPE = "fuse.turnfs";

export interface MountEntry {
	id: number;
	/** Id of the mount that it is mounted on. */
	parent: number;
	/** Absolute path of the mount point. */
	at: string;
	/** For example `ext4`, `fuse.turnfs`. */
	type: string;
	/** The mount's source; for turnfs the real path of the project. */
	source: string;
	/** `major:minor` of st_dev. */
	device: string;
}

/** Octal escapes of mountinfo: space, tab, newline and backslash. */
function unescapeField(field: string): string {
	return field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** Parses mountinfo's text; lines it can't read are left out. Later mounts come later, as in the file. */
export function parseMountInfo(text: string): MountEntry[] {
	const entries: MountEntry[] = [];
	for (const line of text.split("\n")) {
		const [left, right] = line.split(" - ", 2);
		if (left === undefined || right === undefined) continue;
		const [id, parent, device, , at] = left.split(" ");
		const [type, source] = right.split(" ");
		if (!id || !device || !at || !type) continue;
		entries.push({
			id: Number(id),
			parent: Number(parent),
			at: decode(at),
			type,
			source: decode(source ?? ""),
			device,
		});
	}
	return entries;
}

/** mountinfo was read as bytes (latin1): escapes are taken out first, then the path is read as UTF-8. */
function decode(field: string): string {
	return Buffer.from(unescapeField(field), "latin1").toString("utf8");
}

export function readMounts(): MountEntry[] {
	return parseMountInfo(readFileSync("/proc/self/mountinfo", "latin1"));
}

/** Whether `path` is `folder` or below it. Both absolute, without a trailing slash (except `/`). */
export function isWithin(path: string, folder: string): boolean {
	if (folder === "/") return path.startsWith("/");
	return path === folder || path.startsWith(`${folder}/`);
}

/**
 * The mount that an absolute, symlink-free path is on: the longest mount point above it, the newest of several at one place.
 * With `below` turnfs's own mounts are looked through: the answer is the filesystem under them.
 */
export function mountOf(path: string, mounts: MountEntry[], below = false): MountEntry | undefined {
	let best: MountEntry | undefined;
	for (const mount of mounts) {
		if (below && mount.type === TURNFS_TYPE) continue;
		if (isWithin(path, mount.at) && (best === undefined || mount.at.length >= best.at.length)) best = mount;
	}
	return best;
}

/** All turnfs mounts visible here. */
export function turnfsMounts(mounts: MountEntry[]): MountEntry[] {
	return mounts.filter((mount) => mount.type === TURNFS_TYPE);
}
