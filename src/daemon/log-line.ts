import { nowNs, toIsoTime } from "../text/time.js";

/** One line in the daemon's log (its stderr, `daemon.log` in the store). */
export function logLine(message: string): void {
	process.stderr.write(`${toIsoTime(nowNs())} ${message}\n`);
}
