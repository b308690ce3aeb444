/** The mount table as this process sees it. */
import { readFileSync } from "node:fs";

export interface MountEntry {
	/** Device number of what is mounted. For FUSE the minor is the number of its connection. */
	major: number;
	minor: number;
	mountpoint: string;
	type: string;
	source: string;
}

export function readMounts(): MountEntry[] {
	return readFileSync("/proc/self/mountinfo", "utf8")
		.split("\n")
		.filter((line) => line !== "")
		.map(parseMountLine);
}

/** Mounts at `dir` or below it, newest first, which is the order to unmount them in. */
export function mountsBelow(dir: string): MountEntry[] {
	return readMounts()
		.filter((m) => m.mountpoint === dir || m.mountpoint.startsWith(`${dir}/`))
		.reverse();
}

function parseMountLine(line: string): MountEntry {
	const [left = "", right = ""] = line.split(" - ");
	const fields = left.split(" ");
	const [type = "", source = ""] = right.split(" ");
	const [major = 0, minor = 0] = (fields[2] ?? "").split(":").map(Number);
	return { major, minor, mountpoint: unescapeOctal(fields[4] ?? ""), type, source: unescapeOctal(source) };
}

function unescapeOctal(word: string): string {
	return word.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
