import { readFileSync } from "node:fs";

/** Parent, grandparent … of a process, up to the first one that can't be read. */
export function ancestors(pid: number): number[] {
	const found: number[] = [];
	for (let at = parentOf(pid); at > 1 && !found.includes(at); at = parentOf(at)) found.push(at);
	return found;
}

function parentOf(pid: number): number {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
		return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
	} catch {
		return 0; // It has ended.
	}
}
