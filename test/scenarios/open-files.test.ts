import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

const PAGE = 4096;

describe("files that are held open", () => {
	test("one descriptor that writes in three turns: each turn has its own bytes to go back to", async () => {
		const story = await Story.start({
			prepare: "printf 'one two three four' > f; head -c 2500000 /dev/urandom > large",
		});
		const holder = await story.hold();
		await holder.call("open", 1, "f", "r+");
		await holder.call("open", 2, "large", "r+");
		for (const [turn, offset] of [
			[1, 0],
			[2, 4],
			[3, 8],
		] as const) {
			await story.turn(async () => {
				await holder.call("write", 1, offset, `T${turn}`);
				await holder.call("write", 2, turn * 700_000, `turn ${turn}`);
			});
		}
		expect(await story.read("f")).toBe("T1e T2o T3ree four");
		const end = await story.tree();
		await story.rewind(3);
		await story.expectTree(story.before(3));
		expect(await holder.call("read", 1, 0, 100)).toBe("T1e T2o three four");
		await story.redo();
		await story.expectTree(end);
		await story.rewind(1);
		await story.expectTree(story.before(1));
		// Restored in place: the descriptor reads the old bytes, and what it writes is in the file.
		expect(await holder.call("read", 1, 0, 100)).toBe("one two three four");
		await holder.call("write", 1, 0, "ONE");
		expect(await story.read("f")).toBe("ONE two three four");
	});

	test("what is written to a file after it was unlinked is undone with it when its name comes back", async () => {
		const story = await Story.start({
			prepare: "echo original > f; echo other > g; head -c 1500000 /dev/urandom > big",
		});
		const holder = await story.hold();
		for (const [slot, name] of [
			[1, "f"],
			[2, "g"],
			[3, "big"],
		] as const)
			await holder.call("open", slot, name, "r+");
		await story.turn(async () => {
			await story.sh("rm f big; mv g h; rm h");
			await holder.call("write", 1, 0, "OVERWRITTEN after unlink");
			await holder.call("truncate", 2, 2);
			await holder.call("write", 3, 1_000_000, "late");
			expect((await holder.call("stat", 1)).links).toBe(0);
		});
		await roundTrip(story, [], { before: story.before(1) });
	});

	test("a file unlinked in one turn and written in the next has the bytes of each turn", async () => {
		const story = await Story.start({ prepare: "echo original > f; echo linked > g; ln g g2" });
		const holder = await story.hold();
		await holder.call("open", 1, "f", "r+");
		await holder.call("open", 2, "g", "r+");
		await story.turn("rm f g");
		await story.turn(async () => {
			await holder.call("write", 1, 0, "second turn");
			await holder.call("write", 2, 0, "LINKED");
		});
		await story.turn(() => holder.call("write", 1, 0, "third"));
		const end = await story.tree();
		await story.rewind(2);
		await story.expectTree(story.before(2));
		await story.redo();
		await story.expectTree(end);
		await story.rewind(1);
		await story.expectTree(story.before(1));
		expect(await holder.call("read", 1, 0, 20)).toBe("original\n");
	});

	test("a file that never had a name gets one with linkat, and loses it with the rewind", async () => {
		const story = await Story.start({ prepare: "mkdir d; echo x > taken" });
		const holder = await story.hold();
		await story.turn(async () => {
			await holder.call("open", 1, "d", "tmpfile");
			await holder.call("write", 1, 0, "born without a name");
			await holder.call("link", 1, "d/named");
			await holder.call("link", 1, "second");
			expect(await holder.errno("link", 1, "taken")).toBe("EEXIST");
			await holder.call("write", 1, 0, "BORN");
		});
		expect(await story.read("second")).toBe("BORN without a name");
		await story.turn(() => holder.call("write", 1, 5, "WITHOUT"));
		await roundTrip(story, [], { before: story.before(1) });
	});

	test("a file with no name at the turn's start that is named in the next turn is in neither before", async () => {
		const story = await Story.start({ prepare: "echo x > x" });
		const holder = await story.hold();
		await story.turn(async () => {
			await holder.call("open", 1, ".", "tmpfile");
			await holder.call("write", 1, 0, "first");
		});
		await story.turn(async () => {
			await holder.call("write", 1, 0, "FIRST");
			await holder.call("link", 1, "named");
		});
		const end = await story.tree();
		await story.rewind(2);
		await story.expectTree(story.before(2));
		await story.redo();
		await story.expectTree(end);
		expect(await story.read("named")).toBe("FIRST");
	});
});

describe("files that are mapped", () => {
	test.each([
		["with msync", true],
		["without msync", false],
	])("stores in a shared mapping, %s, belong to the turn in which they were made", async (_, sync) => {
		const story = await Story.start({
			prepare: `head -c ${3 * PAGE} /dev/zero | tr '\\0' a > small; head -c 2097152 /dev/zero | tr '\\0' b > large`,
		});
		const holder = await story.hold();
		for (const [slot, name] of [
			[1, "small"],
			[2, "large"],
		] as const) {
			await holder.call("open", slot, name, "r+");
			await holder.call("map", slot);
			// The mapping outlives its descriptor in one case, not in the other.
			if (slot === 1) await holder.call("close", slot);
		}
		for (const turn of [1, 2, 3]) {
			await story.turn(async () => {
				await holder.call("store", 1, turn * 100, `turn ${turn}`);
				await holder.call("store", 1, 2 * PAGE, `again ${turn}`);
				await holder.call("store", 2, turn * 500_000, `turn ${turn}`);
				if (sync) for (const slot of [1, 2]) await holder.call("msync", slot);
			});
		}
		const end = await story.tree();
		await story.rewind(3);
		await story.expectTree(story.before(3));
		await story.redo();
		await story.expectTree(end);
		await story.rewind(1);
		await story.expectTree(story.before(1));
		// In place: whoever still maps the file sees it as it is now.
		expect(await holder.call("load", 1, 100, 6)).toBe("aaaaaa");
		expect(await holder.call("load", 1, 2 * PAGE, 7)).toBe("aaaaaaa");
		await story.redo();
		expect(await holder.call("load", 1, 300, 6)).toBe("turn 3");
		await story.expectTree(end);
	});

	test("a store right before `turn begin` is before, one right after it is in the turn", async () => {
		const story = await Story.start({ prepare: `head -c ${50 * PAGE} /dev/zero > f` });
		const holder = await story.hold();
		await holder.call("open", 1, "f", "r+");
		await holder.call("map", 1);
		for (let round = 1; round <= 5; round++) {
			for (let page = 0; page < 50; page++) await holder.call("store", 1, page * PAGE, `before ${round}`);
			await story.beginTurn();
			await holder.call("store", 1, 7 * PAGE, `within ${round}`);
			await story.endTurn();
			await story.rewind(round);
			await story.expectTree(story.before(round));
			expect(await holder.call("load", 1, 7 * PAGE, 8)).toBe(`before ${round}`);
		}
	});

	test("a mapped file that is unlinked, stored to, and rewound has its first bytes", async () => {
		const story = await Story.start({ prepare: `head -c ${2 * PAGE} /dev/zero | tr '\\0' m > f` });
		const holder = await story.hold();
		await holder.call("open", 1, "f", "r+");
		await holder.call("map", 1);
		await holder.call("close", 1);
		await story.turn(async () => {
			await story.sh("rm f; echo new > f");
			await holder.call("store", 1, 10, "nameless");
		});
		await roundTrip(story, [], { before: story.before(1) });
	});
});
