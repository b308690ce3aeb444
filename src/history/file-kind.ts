import type { Kind } from "../daemon/api.js";

const kinds: Record<number, Kind> = {
	16807: "file",
	9604: "directory",
	21609: "symlink",
	2401: "fifo",
	26411: "socket",
	4802: "character",
	14406: "block",
};

/** What kind of thing a st_mode says it is. */
export function fileKind(mode: number): Kind {
	return kinds[mode & 0o170000] ?? "file";
}

/** `0644` */
export function permissionsText(mode: number): string {
	return (mode & 0o7777).toString(8).padStart(4, "0");
}
