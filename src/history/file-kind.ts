import type { Kind } from "../daemon/api.js";

/** By the bits of S_IFMT. A list of pairs, because Biome's formatter rewrites octal property keys to wrong numbers. */
const kinds = new Map<number, Kind>([
	[0o100000, "file"],
	[0o040000, "directory"],
	[0o120000, "symlink"],
	[0o010000, "fifo"],
	[0o140000, "socket"],
	[0o020000, "character"],
	[0o060000, "block"],
]);

/** What kind of thing a st_mode says it is. */
export function fileKind(mode: number): Kind {
	return kinds.get(mode & 0o170000) ?? "file";
}

/** `0644` */
export function permissionsText(mode: number): string {
	return (mode & 0o7777).toString(8).padStart(4, "0");
}
