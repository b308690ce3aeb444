import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Story } from "../scenarios/story.js";
import { differences, type Tree } from "../scenarios/tree.js";

const program = fileURLToPath(new URL("./calls.py", import.meta.url));
const { calls, refused } = JSON.parse(execFileSync("python3", [program, "list"], { encoding: "utf8" })) as {
	calls: Record<string, string>;
	refused: Record<string, [folder: string, errnos: string[]]>;
};

/** The part of a tree below one folder, that folder included. */
function below(tree: Tree, folder: string): Tree {
	return new Map([...tree].filter(([path]) => path === folder || path.startsWith(`${folder}/`)));
}

describe("P1 Complete: any process, any system call", () => {
	let story: Story;
	let results: Record<string, string>;
	let before: Tree;
	let after: Tree;
	let rewound: Tree;
	let redone: Tree;

	beforeAll(async () => {
		story = await Story.open({ prepare: `python3 ${program} prepare` });
		before = await story.tree();
		await story.turn(async () => {
			results = JSON.parse((await story.sh(`python3 ${program} run`)).stdout);
		});
		after = await story.tree();
		await story.rewind(1);
		rewound = await story.tree();
		await story.redo();
		redone = await story.tree();
	}, 180_000);
	afterAll(() => story?.end(), 60_000);

	/** Allocated and never written: SEEK_DATA calls it a hole until somebody reads it. */
	const unwritten = /^fallocate($| keeping| zero)/;

	test.each(Object.keys(calls))("%s is captured, undone and redone", (name) => {
		const folder = calls[name] ?? "";
		expect(results[name]).toBe("ok");
		expect(
			differences(below(before, folder), below(after, folder)),
			"the call changed nothing: a wrong test",
		).not.toEqual([]);
		const holes = unwritten.test(name) ? ({ holes: "ignore" } as const) : {};
		expect(differences(below(before, folder), below(rewound, folder), { from: after, ...holes })).toEqual([]);
		expect(differences(below(after, folder), below(redone, folder), { from: rewound, ...holes })).toEqual([]);
	});

	test.each(Object.keys(refused))("%s is refused with the kernel's own errno, never passed blind", (name) => {
		const [folder, errnos] = refused[name] ?? ["", []];
		expect(errnos).toContain(results[name]);
		expect(differences(below(before, folder), below(after, folder), { from: before })).toEqual([]);
	});
});
