import { describe, expect, test } from "vitest";
import { Story } from "../scenarios/story.js";

describe("P8 Rewind is undoable", () => {
	test("redo undoes the newest rewind; two rewinds take two redos", async () => {
		const story = await Story.start({ prepare: "echo 0 > f" });
		await story.turn("echo 1 > f; echo a > a");
		await story.turn("echo 2 > f; rm a");
		const end = await story.tree();
		await story.rewind(2);
		await story.rewind(1);
		await story.expectTree(story.before(1));
		await story.redo();
		await story.expectTree(story.before(2));
		await story.redo();
		await story.expectTree(end);
	});

	test("what was changed after the rewind is a conflict for redo, and stays", async () => {
		const story = await Story.start({ prepare: "echo 0 > f; echo 0 > g" });
		await story.turn("echo 1 > f; echo 1 > g");
		await story.rewind(1);
		await story.sh("echo mine > f");
		const mine = await story.tree();
		const refused = await story.cli("redo", "--yes", "--json");
		expect(refused.status).toBe(3);
		await story.expectTree(mine);
		await story.redo("--overwrite");
		expect(await story.read("f")).toBe("1\n");
	});

	test("with nothing to redo, or after the next turn has begun, redo says so and changes nothing", async () => {
		const story = await Story.start({ prepare: "echo 0 > f" });
		await story.turn("echo 1 > f");
		for (const what of ["nothing rewound", "a turn since"]) {
			if (what === "a turn since") {
				await story.rewind(1);
				await story.turn("echo 2 > f");
			}
			const tree = await story.tree();
			const result = await story.cli("redo", "--yes");
			expect(result, what).toMatchObject({ status: 1 });
			expect(result.stderr.trim().split("\n"), what).toHaveLength(1);
			await story.expectTree(tree);
		}
	});

	test("undo is rewind last, and --dry-run of both changes nothing", async () => {
		const story = await Story.start({ prepare: "echo 0 > f; mkdir d" });
		await story.turn("echo 1 > f; rmdir d; echo n > n");
		const end = await story.tree();
		const plan = await story.json("rewind", "1", "--dry-run");
		expect(JSON.stringify(plan)).toContain('"f"');
		await story.expectTree(end);
		expect((await story.json("log")).map((t: { state: string }) => t.state)).toEqual(["ended"]);
		await story.undo();
		await story.expectTree(story.before(1));
		await story.json("redo", "--dry-run");
		await story.expectTree(story.before(1));
		await story.redo();
		await story.expectTree(end);
	});
});
