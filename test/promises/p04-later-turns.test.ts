import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "../scenarios/story.js";

const threeTurns = [
	"echo 1 > f; echo 1 > made1; rm gone1; mv dir dir1",
	"echo 2 > f; echo 2 > made2; rm gone2; mv dir1 dir2; echo 2 > dir2/in; rm made1",
	"echo 3 > f; echo 3 > made3; rm gone3; mv dir2 dir3; rm -rf dir3",
];
const start = "echo 0 > f; for i in 1 2 3; do echo $i > gone$i; done; mkdir dir; echo 0 > dir/in";

describe("P4 Rewinding N undoes turn N and every turn after it", () => {
	test("rewind 1 undoes all three turns; redo brings all three back", async () => {
		const story = await Story.start({ prepare: start });
		await roundTrip(story, threeTurns);
	});

	test("rewind 2 from the same start gives the state at 2, and leaves turn 1 to be rewound later", async () => {
		const story = await Story.start({ prepare: start });
		for (const turn of threeTurns) await story.turn(turn);
		await story.rewind(2);
		await story.expectTree(story.before(2));
		await story.rewind(1);
		await story.expectTree(story.before(1));
	});

	test("each turn can be rewound alone, newest first", async () => {
		const story = await Story.start({ prepare: start });
		for (const turn of threeTurns) await story.turn(turn);
		for (const turn of [3, 2, 1]) {
			await story.rewind("last");
			await story.expectTree(story.before(turn));
		}
		const result = await story.rewindResult("last");
		expect(result.status).toBe(1);
		expect(result.stderr.trim().split("\n")).toHaveLength(1);
	});

	test("a rewound turn is refused, and leaves the listing until asked for", async () => {
		const story = await Story.start({ prepare: start });
		for (const turn of threeTurns) await story.turn(turn);
		await story.rewind(2);
		const tree = await story.tree();
		for (const turn of [2, 3]) {
			const result = await story.rewindResult(turn);
			expect(result.status).toBe(1);
			expect(result.stderr).toMatch(/rewound/);
		}
		await story.expectTree(tree);
		expect((await story.json("log")).map((t: { turn: number }) => t.turn)).toEqual([1]);
		// What was between the turns is listed too, without a number.
		const all = (await story.json("log", "--all")).filter((t: { turn: number | null }) => t.turn !== null);
		expect(all.map((t: { turn: number; state: string }) => [t.turn, t.state])).toEqual([
			[3, "rewound"],
			[2, "rewound"],
			[1, "ended"],
		]);
	});

	test("a number is never used again, and a turn made after a rewind goes back to where it began", async () => {
		const story = await Story.start({ prepare: start });
		for (const turn of threeTurns) await story.turn(turn);
		await story.rewind(2);
		expect(await story.turn("echo 4 > f; mkdir made2; rm gone2")).toBe(4);
		expect(await story.turn("echo 5 > f; rm -rf made2")).toBe(5);
		const end = await story.tree();
		await story.rewind(4);
		await story.expectTree(story.before(4));
		await story.redo();
		await story.expectTree(end);
		await story.rewind(1);
		await story.expectTree(story.before(1));
	});

	test("an empty turn is a point to go back to", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("true");
		await story.turn("echo changed > f; rm -rf dir");
		const end = await story.tree();
		expect((await story.json("show", "1")).changes).toEqual([]);
		await story.rewind(1);
		await story.expectTree(story.before(1));
		await story.redo();
		await story.expectTree(end);
		await story.rewind(2);
		await story.expectTree(story.before(2));
		await story.rewind(1);
		await story.expectTree(story.before(1));
	});

	test("a turn that is open is ended by the rewind", async () => {
		const story = await Story.start({ prepare: start });
		const turn = await story.beginTurn();
		await story.sh(threeTurns[0] ?? "");
		await story.rewind(turn);
		await story.expectTree(story.before(turn));
		expect((await story.json("log", "--all")).find((t: { turn: number }) => t.turn === turn)).toMatchObject({
			state: "rewound",
		});
	});

	test("a turn over two mounts of the same project: what came before the gap is undone too", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn(threeTurns[0] ?? "");
		await story.umount();
		await story.mount();
		await story.turn(threeTurns[1] ?? "");
		await story.umount();
		await story.mount();
		await story.turn(threeTurns[2] ?? "");
		await roundTrip(story, []);
	});
});
