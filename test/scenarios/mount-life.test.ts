/** Whose a mount is: what ends it, and what must not. */
import { describe, expect, test } from "vitest";
import { until } from "./processes.js";
import { Story } from "./story.js";

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
