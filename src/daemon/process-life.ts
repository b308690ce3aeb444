/** Whether a process still lives. A pid alone is reused; pid and start time are not. */
import { readFileSync } from "node:fs";

/** Start time in clock ticks after boot (decimal), or null when there is no such process (or only its zombie). */
export function processStart(pid: number): string | null {
	let stat: string;
	try {
		stat = readFileSync(`/proc/${pid}/stat`, "latin1");
	} catch {
		return null;
	}
	// The command name stands in parentheses and may contain anything, so count from the last one.
	const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
	if (fields[0] === "Z" || fields[0] === "X") return null;
	return fields[19] ?? null;
}

/** @param start as `processStart` gave it; null when it was never known */
export function isProcessAlive(pid: number, start: string | null): boolean {
	const now = processStart(pid);
	return now !== null && (start === null || now === start);
}

/** The short command name, "" when the process has gone. */
export function processComm(pid: number): string {
	try {
		return readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
	} catch {
		return "";
	}
}
