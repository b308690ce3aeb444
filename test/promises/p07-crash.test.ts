import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { until } from "../scenarios/processes.js";
import { isAlive, Story } from "../scenarios/story.js";
import { differences } from "../scenarios/tree.js";

const start =
	"mkdir -p src/deep; for i in $(seq 30); do echo $i > src/$i; done; echo d > src/deep/d; head -c 2000000 /dev/urandom > large; touch -d '2011-01-01' src";
const change =
	"echo changed > src/1; rm src/2; mv src/3 src/three; rm -rf src/deep; echo new > src/new; printf x | dd of=large bs=1 seek=900000 conv=notrunc status=none; chmod 600 src/4";

type Victim = "engine" | "keeper" | "daemon";

async function kill(story: Story, victims: Victim[]): Promise<void> {
	const { pids } = await story.status();
	for (const victim of victims) {
		expect(pids[victim], `pid of the ${victim}`).toBeGreaterThan(1);
		process.kill(pids[victim], "SIGKILL");
	}
	for (const victim of victims) await until(() => !isAlive(pids[victim]));
}

describe("P7 A crash loses nothing: kill -9 of any turnfs process at any moment leaves the project a plain, intact folder, and the history usable after restart", () => {
	test.each<[string, Victim[]]>([
		["engine", ["engine"]],
		["keeper", ["keeper"]],
		["daemon", ["daemon"]],
		["engine and daemon", ["engine", "daemon"]],
		["keeper, engine and daemon", ["keeper", "engine", "daemon"]],
	])("killing the %s after a turn: the folder is plain, and the rewind is exact", async (_, victims) => {
		const story = await Story.start({ prepare: start });
		await story.turn(change);
		const after = await story.tree();
		await kill(story, victims);
		if (victims.includes("engine") || victims.includes("keeper")) await story.waitUnmounted();
		await story.expectTree(after);
		expect((await story.sh("cat src/1", { cwd: story.dir })).stdout).toBe("changed\n");
		await story.rewind(1);
		await story.expectTree(story.before(1));
		await story.redo();
		await story.expectTree(after);
	});

	test.each<[string, Victim[]]>([
		["engine", ["engine"]],
		["keeper", ["keeper"]],
		["daemon", ["daemon"]],
		["keeper, engine and daemon", ["keeper", "engine", "daemon"]],
	])(
		"killing the %s in the middle of a turn: what the turn did so far is undone, and it is no conflict",
		async (_, victims) => {
			const story = await Story.start({ prepare: start });
			await story.turn("echo first > src/30");
			await story.beginTurn();
			await story.sh(change);
			const after = await story.tree();
			await kill(story, victims);
			if (victims.includes("engine") || victims.includes("keeper")) await story.waitUnmounted();
			await story.expectTree(after);
			await story.rewind(2);
			await story.expectTree(story.before(2));
			await story.rewind(1);
			await story.expectTree(story.before(1));
		},
	);

	test.each<[string, Victim[]]>([
		["engine", ["engine"]],
		["keeper", ["keeper"]],
		["keeper, engine and daemon", ["keeper", "engine", "daemon"]],
	])(
		"killing the %s while programs write: every file is from before or after a write, and the rewind is exact",
		async (_, victims) => {
			const story = await Story.start({ prepare: start });
			await story.beginTurn();
			const writer = story.spawn([
				"/bin/bash",
				"-c",
				"i=0; while true; do i=$((i+1)); echo $i > src/w$((i%50)); mv src/w$((i%50)) src/$((i%30+1)); rm -f src/$((i%7+1)); mkdir -p src/d$i/e && rmdir src/d$((i-1))/e src/d$((i-1)); done 2> /dev/null",
			]);
			await sleep(400);
			await kill(story, victims);
			await story.waitUnmounted();
			writer.kill("SIGKILL");
			await writer.stop();
			const now = await story.tree();
			expect(now.get("large")).toEqual(story.before(1).get("large"));
			const { status } = await story.rewindResult(1);
			expect(status).toBe(0);
			await story.expectTree(story.before(1));
		},
	);

	test("a daemon that dies while programs work is not noticed by them, and the next command goes on", async () => {
		const story = await Story.start({ prepare: start });
		await story.beginTurn();
		const shell = story.shell();
		await shell.ask("echo one > src/1 && echo ready", /ready/);
		await kill(story, ["daemon"]);
		await shell.ask("echo two > src/2 && rm src/3 && echo still", /still/);
		await story.endTurn();
		await shell.ask("echo here", /here/);
		await story.rewind(1);
		await story.expectTree(story.before(1));
	});

	test("a rewind that is killed in the middle is finished or cleanly undone at the next start", async () => {
		for (const delayMs of [5, 30, 80, 160]) {
			const story = await Story.open({
				prepare: "mkdir a b; for i in $(seq 600); do echo $i > a/$i; echo x$i > b/$i; done; touch -d '2012-02-02' a b",
			});
			try {
				await story.turn(
					"rm -rf a; for i in $(seq 600); do echo changed >> b/$i; done; mv b c; mkdir a; echo new > a/new",
				);
				const after = await story.tree();
				const { pids } = await story.status();
				const rewind = story.rewindResult(1);
				await sleep(250 + delayMs);
				for (const pid of [pids.daemon, pids.engine]) if (isAlive(pid)) process.kill(pid, "SIGKILL");
				await rewind;
				await story.waitUnmounted();
				// The next command starts a daemon, which settles it.
				await story.ok("log");
				const settled = await story.tree();
				const [undone, done] = [differences(after, settled), differences(story.before(1), settled)];
				expect(
					Math.min(undone.length, done.length),
					`after ${delayMs} ms: ${done.slice(0, 3)} / ${undone.slice(0, 3)}`,
				).toBe(0);
				if (done.length > 0) await story.rewind(1);
				await story.expectTree(story.before(1));
				await story.redo();
				await story.expectTree(after);
			} finally {
				await story.end();
			}
		}
	}, 240_000);

	test("a torn last record of the journal is cut off, and what came before it counts", async () => {
		const story = await Story.start({ prepare: start });
		await story.turn(change);
		await story.beginTurn();
		await story.sh("echo last > src/9");
		const { store } = await story.status();
		await kill(story, ["keeper", "engine", "daemon"]);
		await story.waitUnmounted();
		await story.asRoot(`cd '${store.path}'; for f in journal/*.log; do printf '\\x40\\0\\0\\0torn' >> $f; done`);
		await story.rewind(2);
		await story.expectTree(story.before(2));
		await story.rewind(1);
		await story.expectTree(story.before(1));
	});
});
