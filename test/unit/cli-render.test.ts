import pico from "picocolors";
import { describe, expect, it } from "vitest";
import { parseAnchor, parsePositive, parseSize, parseTurn } from "../../src/cli/arguments.js";
import {
	countChanges,
	describeCounts,
	groupByCommand,
	renderChange,
	renderFolded,
} from "../../src/cli/render/changes.js";
import { suggest } from "../../src/cli/render/commands.js";
import { renderLog } from "../../src/cli/render/log.js";
import { printable, quoteArgument, shortCommand } from "../../src/cli/render/names.js";
import { formatAge, formatDuration } from "../../src/cli/render/quantities.js";
import { nameTurns, renderRewind } from "../../src/cli/render/rewind.js";
import { renderRunSummary } from "../../src/cli/render/run-summary.js";
import { renderShow } from "../../src/cli/render/show.js";
import { renderStatus } from "../../src/cli/render/status.js";
import type { Change, LogEntry, RewindResponse, ShowResponse, StatusResponse } from "../../src/daemon/api.js";

const plain = pico.createColors(false);

function change(status: Change["status"], path: string, more: Partial<Change> = {}): Change {
	return { path, status, kind: "file", before: null, after: null, by: { pid: 7, command: "make" }, ...more };
}

describe("names on a terminal", () => {
	it("can't move the cursor, change colours or turn the direction of text", () => {
		expect(printable("a\u001b[2Jb\r\nc\u202e")).toBe("a\\x1b[2Jb\\x0d\\nc\\u202e");
		expect(printable("grüße 日本")).toBe("grüße 日本");
	});

	it("are quoted as a shell needs it", () => {
		expect(quoteArgument("it's")).toBe("'it'\\''s'");
		expect(shortCommand(["sed", "-i", "s/a b/c/", "x"], 12)).toBe("sed -i 's/a…");
		expect(suggest("undo", undefined)).toBe("turnfs undo");
		expect(suggest("undo", "my project")).toBe("turnfs -C 'my project' undo");
	});
});

describe("quantities", () => {
	it("say ages and durations in the largest fitting unit", () => {
		const now = Date.parse("2026-03-01T12:00:00Z");
		expect(formatAge("2026-03-01T11:59:30Z", now)).toBe("just now");
		expect(formatAge("2026-03-01T11:58:59.5Z", now)).toBe("1 minute ago");
		expect(formatAge("2026-02-27T12:00:00Z", now)).toBe("2 days ago");
		expect(formatDuration("2026-03-01T12:00:00Z", "2026-03-01T12:03:10Z")).toBe("3 min 10 s");
	});
});

describe("arguments", () => {
	it("are checked with one sentence", () => {
		expect(parseTurn("3")).toBe(3);
		expect(parseTurn("last")).toBe("last");
		for (const wrong of ["0", "-1", "3.1", "x", ""]) expect(() => parseTurn(wrong)).toThrow(/A turn is a number/);
		expect(parseAnchor('{"m":1}')).toEqual({ m: 1 });
		expect(() => parseAnchor("{")).toThrow(/not JSON/);
		expect(parseSize("64K", "--x")).toBe(65536);
		expect(parseSize("2GiB", "--x")).toBe(2 ** 31);
		expect(() => parseSize("many", "--x")).toThrow(/is a size/);
		expect(() => parsePositive("1.5", "-n")).toThrow(/number above 0/);
	});
});

describe("changes", () => {
	const changes = [
		change("M", "a.css", { before: { size: 1200, permissions: "0644" }, after: { size: 1300, permissions: "0755" } }),
		change("R", "core", { from: "lib", kind: "directory", by: { pid: 8, command: "mv lib core" } }),
		change("D", "docs", { kind: "directory", by: null }),
		change("A", "new.txt", { after: { size: 5, permissions: "0644" } }),
		change("T", "link", { skipped: "no space left" }),
	];

	it("are counted and grouped by the command that made them first", () => {
		expect(describeCounts(countChanges(changes))).toBe("1 added, 2 modified, 1 deleted, 1 renamed");
		expect(groupByCommand(changes).map((group) => [group.command, group.changes.length])).toEqual([
			["make", 3],
			["mv lib core", 1],
			[null, 1],
		]);
	});

	it("are one line each", () => {
		expect(changes.map((c) => renderChange(c, plain))).toEqual([
			"M a.css  1.2 kB → 1.3 kB, 0644 → 0755",
			"R lib → core/",
			"D docs/",
			"A new.txt  5 B",
			"T link  not kept: no space left",
		]);
	});

	it("in a folder that came or went with them, and inside of .git, are counted only", () => {
		const many = [
			change("M", ".git/index"),
			change("A", ".git/objects/ab/cd"),
			change("D", "docs/deep/a.md"),
			change("D", "docs", { kind: "directory" }),
			change("D", "docs/deep", { kind: "directory" }),
			change("M", "docs.txt"),
		];
		expect(renderFolded(many, plain)).toEqual(["· .git/  1 added, 1 modified", "D docs/  and 2 inside", "M docs.txt"]);
		const kept = [change("D", "lib", { kind: "directory" }), change("R", "lib/a.js", { from: "old.js" })];
		expect(renderFolded(kept, plain)).toEqual(["D lib/", "R old.js → lib/a.js"]);
	});

	it("are summed up after a run, with the way to undo them", () => {
		const shown: ShowResponse = {
			turn: 3,
			label: null,
			state: "ended",
			begin: "2026-03-01T12:00:00Z",
			end: "2026-03-01T12:00:04.2Z",
			changes,
			skipped: [{ path: "link", reason: "no space left" }],
			behind: [],
		};
		const text = renderRunSummary(shown, "my-project");
		expect(text).toContain("turn 3: 5 changes (1 added, 2 modified, 1 deleted, 1 renamed)");
		expect(text).toContain("turnfs -C my-project undo");
		expect(text).toContain("1 path can't be put back, the earlier state was not kept:\n    link: no space left");
		expect(renderRunSummary({ ...shown, changes: [], skipped: [] }, undefined)).toBe("turnfs: turn 3 changed nothing.");
		const many = Array.from({ length: 500 }, (_, i) => change("D", `docs/${i}`));
		expect(renderRunSummary({ ...shown, changes: many }, undefined).split("\n").length).toBeLessThan(14);
		expect(renderShow(shown, plain)).toContain("ended, begun");
	});
});

describe("the log", () => {
	it("has a line per turn", () => {
		const entry: LogEntry = {
			turn: 12,
			label: "fix the tests",
			anchor: null,
			session: null,
			spanKind: "turn",
			begin: new Date().toISOString(),
			end: null,
			state: "open",
			pinned: false,
			counts: { added: 1, modified: 0, deleted: 0, renamed: 0 },
			bytes: 2048,
			skipped: 1,
		};
		expect(renderLog([entry, { ...entry, turn: 3, label: null, state: "rewound", skipped: 0 }], plain)).toBe(
			"12  just now  fix the tests  (1 added, 2.05 kB kept)  open  1 not kept\n 3  just now  (1 added, 2.05 kB kept)  rewound",
		);
		expect(renderLog([], plain)).toMatch(/^No turns; /);
	});
});

describe("a rewind", () => {
	const result: RewindResponse = {
		turn: 3,
		turns: [4, 3],
		restored: [{ path: "a" }],
		deleted: [{ path: "b\u001b" }],
		conflicts: [{ path: "c", reason: "changed after turn 3" }],
		skipped: [],
		failed: [],
		anchor: null,
		redo: true,
		dryRun: true,
		applied: false,
	};

	it("names its turns", () => {
		expect(nameTurns([3])).toBe("turn 3");
		expect(nameTurns([4, 3])).toBe("turns 3 and 4");
		expect(nameTurns([3, 4, 5])).toBe("turns 3 to 5");
		expect(nameTurns([3, 5, 9])).toBe("turns 3, 5 and 9");
	});

	it("says what would happen, and what happened", () => {
		const planned = renderRewind(result, "rewind", plain);
		expect(planned).toContain("rewind plan: undoing turns 3 and 4, 1 path would be put back, 1 would be deleted");
		expect(planned).toContain("  b\\x1b");
		expect(planned).toContain("  c: changed after turn 3");
		expect(renderRewind({ ...result, applied: true }, "rewind", plain)).toContain(
			"rewind done: undoing turns 3 and 4, 1 path put back, 1 deleted",
		);
	});
});

describe("the status", () => {
	it("says what is mounted, open, kept and wrong", () => {
		const status: StatusResponse = {
			project: "/srv/app",
			mounted: true,
			mountpoint: "/srv/app",
			io: "cached",
			turn: 2,
			changes: { added: 0, modified: 3, deleted: 0, renamed: 0 },
			pids: { keeper: 1, engine: 2, daemon: null },
			store: { path: "/state/app", bytes: 1000, turns: 2 },
			holders: [],
			behind: [{ pid: 5, comm: "bash" }],
			problems: [{ code: "TURNFS_X", message: "Bad.", hint: "Do." }],
		};
		const text = renderStatus(status, plain);
		for (const part of [
			"yes, over the project",
			"2 is open, 3 modified so far",
			"2 turns, 1 kB",
			"keeper 1, engine 2",
			"bash (pid 5)",
			"Bad. Do. (TURNFS_X)",
		])
			expect(text).toContain(part);
		expect(renderStatus({ ...status, mounted: false, mountpoint: null, turn: null }, plain)).toContain(
			"changes are not captured",
		);
	});
});
