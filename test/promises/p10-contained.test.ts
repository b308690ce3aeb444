import { describe, expect, test } from "vitest";
import { expectSentence, Story } from "../scenarios/story.js";

describe("P10 Contained: rewind never writes outside the project, follows no symlink, and trusts nothing in the store", () => {
	test("rewind refuses when a parent became a symlink, and nothing outside is touched", async () => {
		const story = await Story.start({
			prepare: "mkdir -p d/sub ../outside/sub; echo in > d/sub/f; echo precious > ../outside/sub/f",
		});
		const outside = await story.treeOf("../outside");
		await story.turn("echo agent > d/sub/f; echo agent > d/made");
		await story.sh("mv d moved; ln -s ../outside d");
		const now = await story.tree();
		const result = await story.rewindResult(1);
		if (result.status === 3) await story.expectTree(now);
		else expect((await story.sh("cat moved/sub/f")).stdout).toBe("in\n"); // by object: it is the same file elsewhere
		expect(await story.treeOf("../outside")).toEqual(outside);
		await story.rewindResult(1, "--overwrite");
		expect(await story.treeOf("../outside")).toEqual(outside);
	});

	test("rewind with --exact replaces the symlink by the folder, and goes nowhere through it", async () => {
		const story = await Story.start({
			prepare: "mkdir -p d/sub ../outside/sub; echo in > d/sub/f; echo precious > ../outside/sub/f",
		});
		const outside = await story.treeOf("../outside");
		await story.turn("echo agent > d/sub/f; rm -rf d; ln -s ../outside d; mkdir -p d/more; rmdir d/more");
		const moved = await story.treeOf("../outside");
		await story.rewind(1);
		await story.expectTree(story.before(1));
		expect(await story.treeOf("../outside")).toEqual(moved);
		expect([...moved.keys()].sort()).toEqual([...outside.keys()].sort());
	});

	test.each([
		[
			"flipped bytes in a pack",
			"for f in packs/*; do python3 -c 'import sys; f = open(sys.argv[1], \"r+b\"); b = bytearray(f.read()); b[len(b) // 2 :] = bytes(x ^ 255 for x in b[len(b) // 2 :]); f.seek(0); f.write(b)' $f; done",
		],
		["packs cut short", "for f in packs/*; do truncate -s 8 $f; done"],
		["packs that are gone", "rm -f packs/*"],
		["preserved files that are gone", "find preserved -type f -delete"],
	])("%s: one clear sentence, and not one file is changed", async (_, damage) => {
		const story = await Story.start({
			prepare:
				"head -c 20000 /dev/urandom > bytes; head -c 30000 /dev/urandom > kept; head -c 100 /dev/urandom > small",
		});
		await story.turn("echo new > bytes; rm kept; echo new > small; echo made > made");
		const after = await story.tree();
		await story.damageStore(damage);
		const result = await story.rewindResult(1);
		expect(result.status).toBe(1);
		expectSentence(result, "TURNFS_STORE_DAMAGED");
		await story.expectTree(after);
	});

	test("a preserved file that somebody changed in the store is noticed before anything is changed", async () => {
		const story = await Story.start({ prepare: "head -c 20000 /dev/urandom > kept; echo f > f" });
		await story.turn("rm kept; echo new > f");
		const after = await story.tree();
		await story.damageStore(
			'find preserved -type f -exec sh -c \'cp "$1" "$1.x"; mv "$1.x" "$1"; echo tampered >> "$1"\' _ {} \';\'',
		);
		const result = await story.rewindResult(1);
		expect(result.status).not.toBe(0);
		await story.expectTree(after);
	});

	test("a corrupt index gives a clear error, and the project is left alone", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		await story.turn("echo new > f");
		const after = await story.tree();
		await story.damageStore(
			"for f in index/*.ldb index/*.log index/MANIFEST* index/CURRENT; do [ -f $f ] && printf garbage > $f; done; true",
		);
		for (const verb of [["log"], ["rewind", "1", "--yes"], ["mount"]]) {
			const result = await story.cli(...verb);
			expect(result.status, verb[0]).toBe(1);
			expectSentence(result, "TURNFS_STORE_DAMAGED");
		}
		await story.expectTree(after);
	});

	test("a store of an unknown version is refused by every verb, and left as it is", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		await story.turn("echo new > f");
		const after = await story.tree();
		await story.damageStore("sed -i 's/[0-9][0-9]*/99/' format");
		for (const verb of [["log"], ["mount"], ["rewind", "1", "--yes"], ["status"], ["run", "--", "true"]]) {
			const result = await story.cli(...verb);
			expect(result.status, verb[0]).toBe(verb[0] === "run" ? 125 : 1);
			expectSentence(result, "TURNFS_STORE_TOO_NEW");
		}
		await story.expectTree(after);
	});
});
