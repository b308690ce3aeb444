import { describe, expect, test } from "vitest";
import { until } from "../scenarios/processes.js";
import { roundTrip, Story } from "../scenarios/story.js";

const start = "mkdir d; for f in a b c; do echo $f > $f; done; echo in > d/in";

async function expectConflict(story: Story, turn: number, paths: string[]): Promise<void> {
	const now = await story.tree();
	const refused = await story.rewindResult(turn);
	expect(refused).toMatchObject({ status: 3 });
	const { conflicts, applied } = JSON.parse(refused.stdout);
	expect(conflicts.map((c: { path: string }) => c.path).sort()).toEqual(paths);
	for (const { reason } of conflicts) expect(reason).toMatch(/\S/);
	expect(applied).toBe(false);
	expect(refused.stderr).toMatch(/TURNFS_REWIND_CONFLICT/);
	await story.expectTree(now);
}

describe("P9 Your edits are yours: a path that a turn changed and somebody else changed later is a conflict", () => {
	test.each<[string, (story: Story, script: string) => Promise<unknown>]>([
		["between turns, through the mount", (story, script) => story.sh(script)],
		[
			"in a gap, while nothing was mounted",
			async (story, script) => {
				await story.umount();
				await story.sh(script);
				await story.mount();
			},
		],
		[
			"in a gap that still lasts",
			async (story, script) => {
				await story.umount();
				await story.sh(script);
			},
		],
		[
			"behind the mount",
			async (story, script) => {
				await story.behind(script);
				// What is kept in the kernel's cache doesn't hear of it; the comparisons below look through the mount too.
				await story.umount();
			},
		],
	])(
		"an edit %s: nothing is changed, the edit survives, --overwrite works, redo brings the edit back",
		async (_, edit) => {
			const story = await Story.start({ prepare: start });
			await story.turn("echo agent > a; echo agent > b; rm c; echo made > new");
			await edit(story, "echo mine > a; echo unrelated > mine");
			const mine = await story.tree();
			await expectConflict(story, 1, ["a"]);
			await story.rewind(1, "--overwrite");
			expect(await story.read("a")).toBe("a\n");
			expect(await story.read("b")).toBe("b\n");
			expect(await story.read("c")).toBe("c\n");
			expect(await story.read("mine")).toBe("unrelated\n");
			await story.redo();
			await story.expectTree(mine);
			expect(await story.read("a")).toBe("mine\n");
		},
	);

	test("an edit by another process during a turn with an owner is the other's", async () => {
		const story = await Story.start({ prepare: start });
		const agent = story.shell();
		const other = story.shell();
		const turn = await story.beginTurn("--owner", String(agent.pid));
		await agent.ask("echo agent > a; echo agent > b; echo done", /done/);
		await other.ask("echo other > a; echo other > c; echo done", /done/);
		await agent.ask("echo agent > d/in; echo done", /done/);
		await story.endTurn();
		const shown = (await story.json("show", String(turn))).changes.map((c: { path: string }) => c.path);
		expect(shown).not.toContain("c");
		await expectConflict(story, turn, ["a"]);
		await story.rewind(turn, "--overwrite");
		expect((await story.sh("cat a b c d/in")).stdout).toBe("a\nb\nother\nin\n");
		await story.redo();
		expect((await story.sh("cat a b c d/in")).stdout).toBe("other\nagent\nother\nagent\n");
	});

	test("who touched first and was overwritten by the turn is no conflict, and his bytes are what comes back", async () => {
		const story = await Story.start({ prepare: start });
		const agent = story.shell();
		const turn = await story.beginTurn("--owner", String(agent.pid));
		await story.sh("echo other > a");
		await agent.ask("echo agent > a; echo done", /done/);
		await story.endTurn();
		await story.rewind(turn);
		expect(await story.read("a")).toBe("other\n");
	});

	test("`run` knows its own processes by a token, however far they have wandered off", async () => {
		const story = await Story.start({ prepare: start });
		const run = story.spawn(
			story.command(
				"run",
				"--",
				"bash",
				"-c",
				"setsid bash -c 'sleep 0.3; echo orphan > b' < /dev/null & echo agent > a; echo up; read line; sleep 0.5",
			),
		);
		await run.seen(/up/);
		await story.sh("echo other > c");
		await run.ask("go on", /|/);
		await until(() => !run.running());
		const shown = (await story.json("show", "1")).changes.map((c: { path: string }) => c.path).sort();
		expect(shown).toEqual(["a", "b"]);
		await story.rewind(1);
		expect((await story.sh("cat a b c")).stdout).toBe("a\nb\nother\n");
	});

	test("what only others changed stays, and their files in a folder the turn made stay with that folder", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("mkdir made; echo agent > made/agent; echo agent > a");
		await story.sh("echo mine > made/mine; echo mine > b; rm c");
		await story.rewind(1);
		expect((await story.sh("cat a b made/mine; ls made; test ! -e c")).stdout).toBe("a\nmine\nmine\nmine\n");
	});

	test("an edit in a folder that the turn renamed moves back with the folder", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("mv d renamed");
		await story.sh("echo mine > renamed/note; echo mine >> renamed/in");
		await story.rewind(1);
		expect((await story.sh("cat d/note d/in; test ! -e renamed")).stdout).toBe("mine\nin\nmine\n");
	});

	test("a file the turn made and you edited is a conflict, and so is one it removed and you made again", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("echo agent > new; rm c");
		await story.sh("echo mine >> new; echo mine > c");
		await expectConflict(story, 1, ["c", "new"]);
		const mine = await story.tree();
		await story.rewind(1, "--overwrite");
		await story.expectTree(story.before(1), { mtimes: "ignore" });
		await story.redo();
		await story.expectTree(mine);
	});

	test("a file renamed by you after the turn changed it is a conflict or follows its new name, never two files", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("echo agent > a");
		await story.sh("mv a mine");
		const result = await story.rewindResult(1, "--overwrite");
		expect([0, 4]).toContain(result.status);
		const files = (await story.sh("ls")).stdout.split("\n");
		expect(files.filter((f) => ["a", "mine"].includes(f))).toHaveLength(1);
	});

	test("not conflicts: a present state equal to the target, times alone, and what is ignored by default", async () => {
		const story = await Story.start({
			prepare: `${start}; mkdir .git; echo index > .git/index; echo x > m.pyc; echo s > .DS_Store`,
		});
		await story.turn(
			"echo agent > a; echo agent > .git/index; echo agent > m.pyc; echo agent > .DS_Store; echo agent > d/in",
		);
		await story.sh("echo a > a; echo user > .git/index; echo user > m.pyc; echo user > .DS_Store; touch d; touch d/in");
		const mine = await story.tree();
		await story.rewind(1);
		expect((await story.sh("cat a d/in .git/index m.pyc .DS_Store")).stdout).toBe("a\nin\nindex\nx\ns\n");
		await story.redo();
		await story.expectTree(mine);
	});

	test("an edit between turn 1 and turn 2 is a conflict for 1 and none for 2", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("echo one > a; echo one > b");
		await story.sh("echo mine > a");
		await story.turn("echo two > a; echo two > b");
		await expectConflict(story, 1, ["a"]);
		await story.rewind(2);
		await story.expectTree(story.before(2));
		expect(await story.read("a")).toBe("mine\n");
		await expectConflict(story, 1, ["a"]);
	});

	test("--exact goes back to the very tree of then, everybody's changes included, and redo brings them back", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("echo one > a; mkdir made");
		await story.sh("echo mine > a; echo mine > mine; rm -rf d; echo mine > made/mine");
		await story.turn("echo two > b");
		await story.sh("rm c");
		const end = await story.tree();
		await story.rewind(1, "--exact");
		await story.expectTree(story.before(1));
		await story.redo();
		await story.expectTree(end);
	});

	test("--dry-run shows conflicts and changes nothing, not even the history", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("echo agent > a; rm -rf d");
		await story.sh("echo mine > a");
		const mine = await story.tree();
		const log = await story.json("log", "--all");
		for (const flags of [[], ["--overwrite"], ["--exact"]]) {
			const result = await story.cli("rewind", "1", "--dry-run", "--json", ...flags);
			const plan = JSON.parse(result.stdout);
			expect(plan).toMatchObject({ dryRun: true, applied: false });
			expect(plan.restored.map((r: { path: string }) => r.path)).toEqual(expect.arrayContaining(["d/in"]));
			await story.expectTree(mine);
		}
		expect((await story.json("log", "--all")).length).toBe(log.length);
	});

	test("a turn over a gap in which nobody changed anything has no conflicts", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn("echo one > a; rm b; mv d e; chmod 600 c");
		await story.umount();
		await story.mount();
		await story.turn("echo two > a; mv e f");
		await roundTrip(story, []);
	});
});
