import prettyBytes from "pretty-bytes";

/** `1.2 MB` */
export function formatSize(sizeBytes: number): string {
	return prettyBytes(sizeBytes);
}

/** `3 files`, `1 file` */
export function count(n: number, noun: string, plural = `${noun}s`): string {
	return `${n} ${n === 1 ? noun : plural}`;
}

const STEPS: [seconds: number, unit: string][] = [
	[86400 * 365, "year"],
	[86400 * 30, "month"],
	[86400, "day"],
	[3600, "hour"],
	[60, "minute"],
];

/** `5 minutes ago`; `just now` below a minute. */
export function formatAge(isoTime: string, nowMs = Date.now()): string {
	const seconds = Math.max(0, (nowMs - Date.parse(isoTime)) / 1000);
	for (const [length, unit] of STEPS) if (seconds >= length) return `${count(Math.floor(seconds / length), unit)} ago`;
	return "just now";
}

/** `4.2 s`, `3 min 10 s` between two ISO times. */
export function formatDuration(from: string, to: string): string {
	const seconds = Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);
	if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
	return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
