/** Whose a mount is: what ends it, what must not, and what becomes of one that nobody serves. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "./processes.js";
import { isAlive, Story } from "./story.js";

const TIMEOUT_MS = 120_000;

describe("whoever has mounted takes away that mount, never the next one", () => {
	const run = ["run", "--", "bash", "-c", "cd /; echo up; read _"];
	test.each<[string, string[], RegExp, "SIGKILL" | "SIGTERM" | "end of input"]>([
		["a run that ends in order", run, /up/, "end of input"],
		["a run that is killed", run, /up/, "SIGKILL"],
		["a mount in the foreground that is ended", ["mount", "--foreground"], /is mounted at/, "SIGTERM"],
		["a mount in the foreground that is killed", ["mount", "--foreground"], /is mounted at/, "SIGKILL"],
	])(
		"%s",
		async (_, verb, sign, end) => {
			const story = await Story.start({ prepare: "echo f > f", mount: false });
			const holder = story.spawn(story.command(...verb), { cwd: story.base });
			await holder.seen(sign);
			await until(async () => (await story.status()).holders.length === 1, "the holder's hold");
			const first = (await story.status()).pids.keeper;
			// Stopped, it can't see in between that its mount has gone.
			process.kill(holder.pid, "SIGSTOP");
			await story.umount("--lazy");
			await story.mount();
			const second = (await story.status()).pids.keeper;
			expect(second).not.toBe(first);
			if (end === "end of input") holder.closeInput();
			else holder.kill(end);
			process.kill(holder.pid, "SIGCONT");
			await until(() => !holder.running(), "the holder's end");
			// The daemon has seen the end of the hold before it answers these.
			await story.beginTurn();
			await story.endTurn();
			expect((await story.status()).pids.keeper).toBe(second);
			await story.sh("echo still captured > f");
			expect((await story.status()).mounted).toBe(true);
		},
		TIMEOUT_MS,
	);
});

describe("a mount that nobody serves any more is cleared away by the next command", () => {
	test.each<[string, string[], boolean]>([
		["status", ["status"], false],
		["mount", ["mount"], false],
		["run", ["run", "--", "cat", "f"], false],
		["mount, its runtime files lost", ["mount"], true],
		["run, its runtime files lost", ["run", "--", "cat", "f"], true],
	])(
		"%s",
		async (_, verb, lost) => {
			const story = await Story.start({ prepare: "echo first > f" });
			const before = await story.tree();
			await story.turn("echo changed > f");
			const { pids } = await story.status();
			// All at once, the engine's guard too: nobody is left who could unmount.
			const all = [pids.daemon, pids.keeper, ...descendants(pids.keeper)];
			expect(all).toContain(pids.engine);
			for (const pid of all) process.kill(pid, "SIGSTOP");
			for (const pid of all) process.kill(pid, "SIGKILL");
			await until(() => all.every((pid) => !isAlive(pid)), "their end");
			// Attributes and names may still come from the kernel's memory.
			const asked = await story.run(["stat", "-f", story.dir], { cwd: story.base });
			expect(asked.stderr).toContain("Transport endpoint is not connected");
			if (lost) rmSync(join(story.project.env.XDG_RUNTIME_DIR ?? "", "turnfs"), { recursive: true });
			const done = await story.run(story.command(...verb), { cwd: story.base });
			expect(done.stderr).not.toMatch(/TURNFS_/);
			expect(done.status).toBe(0);
			await story.rewind(1);
			await story.expectTree(before);
		},
		TIMEOUT_MS,
	);
});

function descendants(pid: number): number[] {
	const threads = readdirSync(`/proc/${pid}/task`);
	const children = threads.flatMap((thread) =>
		readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
	);
	return children.flatMap((child) => [child, ...descendants(child)]);
}
