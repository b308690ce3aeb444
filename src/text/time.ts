/** Times inside turnfs are nanoseconds since 1970 (bigint); in JSON they are ISO 8601 in UTC. */

/** `2026-03-01T12:00:00.123456789Z`, exact to the nanosecond. */
export function toIsoTime(ns: bigint): string {
	let seconds = ns / 1_000_000_000n;
	let rest = ns % 1_000_000_000n;
	if (rest < 0n) {
		rest += 1_000_000_000n;
		seconds -= 1n;
	}
	const date = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
	return `${date}.${rest.toString().padStart(9, "0")}Z`;
}

/** Now, in nanoseconds since 1970 (to the millisecond). */
export function nowNs(): bigint {
	return BigInt(Date.now()) * 1_000_000n;
}
