import { describe, expect, it } from "vitest";
import type { Plan, Selection } from "../../src/rewind/types.js";
import { ModelProject, select } from "./rewind-model.js";

const USER = 0;

/** A project with some files of the user's, and turn 1 begun. */
function begin(): { project: ModelProject; seq: bigint } {
	const project = new ModelProject();
	project.create("notes", "mine");
	project.create("other", "mine");
	project.mkdir("src");
	project.create("src/main", "main");
	return { project, seq: project.advance(1) };
}

function paths(list: Plan["conflicts"]): string[] {
	return list.map(({ path }) => path);
}

describe("an edit of the user's", () => {
	it("after the turn's edit of the same file is a conflict, and with overwrite goes and comes back by redo", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.advance(USER);
		project.write("notes", 0, "USER!");
		project.advance(USER);
		const plan = project.plan(seq, select(1));
		expect(paths(plan.conflicts)).toEqual(["notes"]);
		const before = project.tree();
		const back = project.rewind(seq, select(1), { overwrite: true });
		expect(project.inodes.get(project.at("notes"))?.bytes).toBe("mine");
		project.rewind(back.seq, select(back.lane));
		expect(project.tree()).toEqual(before);
	});

	it("before the turn's first touch is part of what comes back, without a conflict", () => {
		const { project } = begin();
		project.write("other", 0, "agent1");
		project.advance(USER);
		project.write("notes", 0, "user");
		const seq = project.advance(2);
		project.write("notes", 0, "AGENT2");
		project.advance(USER);
		const { plan } = project.rewind(seq, select(2));
		expect(plan.conflicts).toEqual([]);
		expect(project.inodes.get(project.at("notes"))?.bytes).toBe("user");
		expect(project.inodes.get(project.at("other"))?.bytes).toBe("agent1");
	});

	it("during the turn counts by journal order: before the turn's touch it is kept, after it a conflict", () => {
		const first = begin();
		first.project.write("notes", 0, "user", USER);
		first.project.write("notes", 0, "AGENT!");
		first.project.advance(USER);
		expect(first.project.plan(first.seq, select(1)).conflicts).toEqual([]);

		const second = begin();
		second.project.write("notes", 0, "AGENT!");
		second.project.write("notes", 0, "user", USER);
		second.project.write("notes", 0, "AGAIN!");
		second.project.advance(USER);
		expect(paths(second.project.plan(second.seq, select(1)).conflicts)).toEqual(["notes"]);
	});

	it("outside the mount shows by the post-state", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.create("made");
		project.advance(USER);
		project.outside((p) => {
			p.write("notes", 0, "gap");
			p.write("made", 0, "gap");
		});
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["made", "notes"]);
	});

	it("outside the mount, before a later turn touched it again, shows too", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.advance(USER);
		project.outside((p) => p.write("notes", 0, "gap"));
		project.advance(2);
		project.write("notes", 0, "AGENT2");
		project.advance(USER);
		expect(paths(project.plan(seq, select(1, 2)).conflicts)).toEqual(["notes"]);
	});

	it("of what no turn touched is left alone", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.advance(USER);
		project.write("other", 0, "USER");
		project.create("src/mine", "u");
		const { plan } = project.rewind(seq, select(1));
		expect(plan.conflicts).toEqual([]);
		expect(project.inodes.get(project.at("other"))?.bytes).toBe("USER");
		expect(project.has("src/mine")).toBe(true);
	});

	it("of permissions is a conflict, of times alone is none", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.write("other", 0, "AGENT");
		project.advance(USER);
		project.touch("notes");
		project.chmod("other", 0o600);
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["other"]);
	});

	it("is no conflict where the present is already as the target", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.chmod("other", 0o600);
		project.advance(USER);
		project.write("notes", 0, "mine ");
		project.truncate("notes", 4);
		project.chmod("other", 0o644);
		project.advance(USER);
		expect(project.plan(seq, select(1)).conflicts).toEqual([]);
	});

	it("of a file that the turn had made is a conflict: it would go", () => {
		const { project, seq } = begin();
		project.create("made", "agent");
		project.advance(USER);
		project.write("made", 0, "user");
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["made"]);
	});

	it("under a name that a program writes by itself is never a conflict", () => {
		const { project } = begin();
		project.mkdir(".git");
		project.create(".git/index", "1");
		project.create("src/a.pyc", "1");
		project.create(".DS_Store", "1");
		const seq = project.advance(2);
		for (const path of [".git/index", "src/a.pyc", ".DS_Store"]) {
			project.write(path, 0, "2");
		}
		project.advance(USER);
		for (const path of [".git/index", "src/a.pyc", ".DS_Store"]) {
			project.write(path, 0, "3");
		}
		const { plan } = project.rewind(seq, select(2));
		expect(plan.conflicts).toEqual([]);
		expect(project.inodes.get(project.at(".git/index"))?.bytes).toBe("1");
	});
});

describe("names that somebody else took or removed", () => {
	it("a file that the turn edited and the user deleted is a conflict; with overwrite it is back", () => {
		const { project, seq } = begin();
		const { notes } = { notes: project.at("notes") };
		project.write("notes", 0, "AGENT");
		project.advance(USER);
		project.unlink("notes");
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["notes"]);
		project.rewind(seq, select(1), { overwrite: true });
		expect(project.at("notes")).toBe(notes);
		expect(project.inodes.get(notes)?.bytes).toBe("mine");
	});

	it("a name that the user gave to another file is a conflict; with overwrite the turn's file is back", () => {
		const { project, seq } = begin();
		const notes = project.at("notes");
		project.unlink("notes");
		project.advance(USER);
		project.create("notes", "another");
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["notes"]);
		project.rewind(seq, select(1), { overwrite: true });
		expect(project.at("notes")).toBe(notes);
	});

	it("a folder that the user removed, in which the turn removed a file, is a conflict; with overwrite both are back", () => {
		const { project, seq } = begin();
		const before = project.tree();
		project.unlink("src/main");
		project.advance(USER);
		project.rmdir("src");
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["src/main"]);
		project.rewind(seq, select(1), { overwrite: true });
		expect(Object.keys(project.tree())).toEqual(Object.keys(before));
	});

	it("a folder that the turn made stays with the file that the user put into it", () => {
		const { project, seq } = begin();
		project.mkdir("made");
		project.mkdir("made/deep");
		project.create("made/deep/agent", "a");
		project.create("made/agent", "a");
		project.advance(USER);
		project.create("made/deep/mine", "u");
		const { plan } = project.rewind(seq, select(1));
		expect(plan.conflicts).toEqual([]);
		expect(plan.kept).toEqual(["made", "made/deep"]);
		expect(Object.keys(project.tree())).toEqual([
			".",
			"made",
			"made/deep",
			"made/deep/mine",
			"notes",
			"other",
			"src",
			"src/main",
		]);
	});

	it("such a folder in the way of what was there before is a conflict; with overwrite it goes, and a redo has it", () => {
		const { project, seq } = begin();
		const src = project.at("src");
		project.rename("src", "old");
		project.mkdir("src");
		project.create("src/agent", "a");
		project.advance(USER);
		project.create("src/mine", "u");
		project.mkdir("src/more");
		project.create("src/more/mine", "u");
		project.advance(USER);
		const after = project.tree();
		expect(paths(project.plan(seq, select(1)).conflicts)).toEqual(["src"]);
		const back = project.rewind(seq, select(1), { overwrite: true });
		expect(project.at("src")).toBe(src);
		expect(Object.keys(project.tree())).toEqual([".", "notes", "other", "src", "src/main"]);
		project.rewind(back.seq, select(back.lane));
		expect(project.tree()).toEqual(after);
	});

	it("what the user edits inside a folder that the turn renamed moves back with the folder", () => {
		const { project, seq } = begin();
		project.rename("src", "core");
		project.advance(USER);
		project.write("core/main", 0, "USER");
		project.create("core/mine", "u");
		const { plan } = project.rewind(seq, select(1));
		expect(plan.conflicts).toEqual([]);
		expect(project.inodes.get(project.at("src/main"))?.bytes).toBe("USER");
		expect(project.has("src/mine")).toBe(true);
	});

	it("a file that the user renamed after the turn's edit gets its bytes back where it is", () => {
		const { project, seq } = begin();
		project.write("notes", 0, "AGENT");
		project.advance(USER);
		project.rename("notes", "renamed");
		const { plan } = project.rewind(seq, select(1));
		expect(paths(plan.conflicts)).toEqual([]);
		expect(project.inodes.get(project.at("renamed"))?.bytes).toBe("mine");
	});
});

describe("other lanes", () => {
	it("an earlier turn's left-over process that changed the file later is somebody else, unless its turn is undone too", () => {
		const { project, seq: one } = begin();
		project.write("other", 0, "turn1");
		const two = project.advance(2);
		project.write("notes", 0, "turn2");
		project.write("notes", 0, "late1", 1);
		project.advance(USER);
		expect(paths(project.plan(two, select(2)).conflicts)).toEqual(["notes"]);
		expect(project.plan(one, select(1, 2)).conflicts).toEqual([]);
		project.rewind(one, select(1, 2));
		expect(project.inodes.get(project.at("notes"))?.bytes).toBe("mine");
	});

	it("what a rewound turn's left-over process did after the rewind goes with the turn before it", () => {
		const { project, seq: one } = begin();
		project.write("other", 0, "turn1");
		const two = project.advance(2);
		project.write("notes", 0, "turn2");
		project.advance(USER);
		project.rewind(two, select(2));
		const rewound = project.records.at(-1)?.seq ?? 0n;
		project.write("src/main", 0, "late", 2);
		project.create("late", "late", 2);
		project.advance(USER);
		const selection: Selection = {
			lanes: new Map([
				[1, 0n],
				[2, rewound],
			]),
			ignored: new Set([2]),
			everybody: false,
		};
		const { plan } = project.rewind(one, selection);
		expect(plan.conflicts).toEqual([]);
		expect(project.has("late")).toBe(false);
		expect(project.inodes.get(project.at("src/main"))?.bytes).toBe("main");
		expect(project.inodes.get(project.at("other"))?.bytes).toBe("mine");
	});

	it("exact takes the oldest pre-image whoever touched it, and knows no conflicts", () => {
		const { project, seq } = begin();
		const before = project.tree();
		project.write("notes", 0, "user", USER);
		project.write("notes", 0, "AGENT!");
		project.advance(USER);
		project.unlink("other");
		project.mkdir("mine");
		project.create("mine/x", "u");
		project.advance(USER);
		const { plan } = project.rewind(seq, { ...select(1), everybody: true }, { overwrite: true });
		expect(plan.conflicts).toEqual([]);
		expect(project.tree()).toEqual(before);
	});
});

describe("what could not be captured", () => {
	it("leaves bytes and times alone, says so, and puts the rest back", () => {
		const { project, seq } = begin();
		project.chmod("notes", 0o600);
		const object = project.at("notes");
		project.records.push({
			type: "skipped",
			seq: (project.records.at(-1)?.seq ?? 0n) + 1n,
			epoch: project.epoch,
			lane: 1,
			proc: null,
			timeNs: 0n,
			object,
			dir: null,
			name: "",
			what: "data",
			errno: 27,
			reason: "larger than --max-preimage",
		});
		const inode = project.inodes.get(object);
		if (inode === undefined) throw new Error("no notes");
		inode.bytes = "agent's";
		inode.mtime = 777n;
		const plan = project.plan(seq, select(1));
		expect(plan.skipped).toEqual([{ path: "notes", reason: "larger than --max-preimage" }]);
		expect(plan.steps.some((step) => step.do === "bytes")).toBe(false);
		const attrs = plan.steps.find((step) => step.do === "attrs" && step.path === "notes");
		expect(attrs).toMatchObject({ want: { mode: 0o644, mtimeNs: 777n } });
	});
});

describe("an ordinary user's folders without write permission", () => {
	it("are opened for the moment and get their permissions back last", () => {
		const { project } = begin();
		project.chmod("src", 0o555);
		project.chmod("src/main", 0o444);
		for (const inode of project.inodes.values()) {
			inode.uid = 1000;
		}
		const seq = project.advance(1);
		project.write("src/main", 0, "AGENT");
		project.unlink("src/main");
		const plan = project.plan(seq, select(1), { uid: 1000 });
		const about = plan.steps.filter((step) => step.path === "src").map((step) => step.do);
		expect(about).toEqual(["open-up", "attrs"]);
		expect(plan.steps.find((step) => step.do === "open-up")).toMatchObject({ mode: 0o755 });
		expect(plan.steps.filter((step) => step.path === "src/main").map((step) => step.do)).toEqual([
			"move",
			"open-up",
			"bytes",
			"attrs",
		]);
		const last = plan.steps.findLast((step) => step.do === "attrs" && step.path === "src");
		expect(last).toMatchObject({ want: { mode: 0o555 } });
	});
});
