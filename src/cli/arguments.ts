/** Values of arguments: what a person may type, checked with one sentence when it is something else. */
import { existsSync } from "node:fs";
import { TurnfsError } from "../errors.js";

export function usageError(what: string): TurnfsError {
	return new TurnfsError("TURNFS_USAGE", { what });
}

/** A turn's number, or `last`. */
export function parseTurn(text: string): number | "last" {
	if (text === "last") return "last";
	if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
	throw usageError(`A turn is a number or \`last\`, not \`${text}\`.`);
}

/** JSON that a harness chooses; undefined when the option wasn't given. */
export function parseAnchor(text: string | undefined): unknown {
	if (text === undefined) return undefined;
	try {
		return JSON.parse(text) as unknown;
	} catch {
		throw usageError("The value of --anchor is not JSON.");
	}
}

export function parsePositive(text: string, option: string): number {
	const n = Number(text);
	if (Number.isSafeInteger(n) && n > 0) return n;
	throw usageError(`The value of ${option} is a number above 0, not \`${text}\`.`);
}

/** A process that lives now. */
export function parsePid(text: string, option: string): number {
	const pid = parsePositive(text, option);
	if (!existsSync(`/proc/${pid}`)) throw usageError(`The value of ${option} is ${pid}, and there is no such process.`);
	return pid;
}

const SIZE_UNITS: Record<string, number> = { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 };

/** `4096`, `64K`, `10M`, `2G` as bytes. */
export function parseSize(text: string, option: string): number {
	const match = /^(\d+)([KMGT]?)(?:i?B)?$/i.exec(text);
	const bytes = match ? Number(match[1]) * (SIZE_UNITS[(match[2] ?? "").toUpperCase()] ?? 1) : Number.NaN;
	if (Number.isSafeInteger(bytes)) return bytes;
	throw usageError(`The value of ${option} is a size such as \`64K\` or \`2G\`, not \`${text}\`.`);
}
