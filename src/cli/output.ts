/**
 * Writing to the terminal. With plain write(2), not `process.stdout`: opening that stream makes a pipe non-blocking for
 * everybody who shares it, the program under `run` included.
 */
import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import pico from "picocolors";

export const STDOUT = 1;
export const STDERR = 2;

/** Ends the process: the reader of our output has gone (`turnfs log | head`), so there is nobody left to tell. */
function readerGone(): never {
	process.exit(process.exitCode ?? 0);
}

function writeAll(fd: number, text: string): void {
	let rest = Buffer.from(text, "utf8");
	const pause = new Int32Array(new SharedArrayBuffer(4));
	while (rest.length > 0) {
		try {
			rest = rest.subarray(writeSync(fd, rest));
		} catch (error) {
			const code = (error as NodeJS.ErrnoException).code;
			if (code === "EPIPE" || code === "EBADF" || code === "EIO") {
				if (fd === STDOUT) readerGone();
				return;
			}
			// Somebody else made the pipe non-blocking and it is full.
			if (code === "EAGAIN") Atomics.wait(pause, 0, 0, 10);
			else throw error;
		}
	}
}

/** Results, for people or programs: standard output. */
export function say(text: string): void {
	writeAll(STDOUT, text.endsWith("\n") ? text : `${text}\n`);
}

/** Remarks, warnings, errors, and all that `run` has to say: standard error. */
export function remark(text: string): void {
	writeAll(STDERR, text.endsWith("\n") ? text : `${text}\n`);
}

export function sayJson(value: unknown): void {
	say(JSON.stringify(value));
}

/** What a person typed may be asked back only when both ends are a person. */
export function isInteractive(): boolean {
	return isatty(0) && isatty(STDERR);
}

export type Colors = ReturnType<typeof pico.createColors>;

/** Colours for a stream: only on terminals, and never against NO_COLOR. */
export function colorsFor(fd: number): Colors {
	const env = process.env;
	const wanted = isatty(fd) && !env.NO_COLOR && env.TERM !== "dumb";
	return pico.createColors(wanted);
}
