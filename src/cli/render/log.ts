import type { LogEntry } from "../../daemon/api.js";
import type { Colors } from "../output.js";
import { describeCounts } from "./changes.js";
import { printable } from "./names.js";
import { formatAge, formatSize } from "./quantities.js";

/** One line per turn, newest first. */
export function renderLog(entries: LogEntry[], colors: Colors): string {
	if (entries.length === 0) return "No turns; `turnfs log --all` lists rewound ones too.";
	const rows = entries.map((entry) => ({
		number: entry.turn === null ? "·" : String(entry.turn),
		age: formatAge(entry.begin),
		label: printable(entry.label ?? (entry.turn === null ? `(${entry.spanKind})` : "")),
		entry,
	}));
	const numberWidth = Math.max(...rows.map((row) => row.number.length));
	const ageWidth = Math.max(...rows.map((row) => row.age.length));
	return rows
		.map(({ number, age, label, entry }) => {
			const words = [describeCounts(entry.counts) || "no changes"];
			if (entry.bytes > 0) words.push(`${formatSize(entry.bytes)} kept`);
			if (entry.pinned) words.push("pinned");
			const notes: string[] = [];
			if (entry.state === "open") notes.push(colors.green("open"));
			if (entry.state === "rewound") notes.push(colors.dim("rewound"));
			if (entry.skipped > 0) notes.push(colors.red(`${entry.skipped} not kept`));
			const head = `${colors.bold(number.padStart(numberWidth))}  ${colors.dim(age.padEnd(ageWidth))}`;
			return [head, ...(label ? [label] : []), colors.dim(`(${words.join(", ")})`), ...notes].join("  ");
		})
		.join("\n");
}
