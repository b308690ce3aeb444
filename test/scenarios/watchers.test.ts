import { describe, expect, test } from "vitest";
import { until } from "./processes.js";
import { Story } from "./story.js";

describe("programs that go on while a rewind happens", () => {
	test("an inotify watcher inside the mount sees what a rewind changes", async () => {
		const story = await Story.start({
			prepare: "mkdir src; echo old > src/app.js; echo gone > src/gone.js; echo same > src/same.js",
		});
		const watcher = await story.watch("src");
		await story.turn("echo new > src/app.js; rm src/gone.js; echo made > src/made.js; chmod 600 src/app.js");
		await watcher.settle();
		watcher.clear();
		await story.rewind(1);
		await watcher.until((events) => events.some((e) => e.name === "gone.js"));
		const seen = (name: string) => watcher.events.filter((e) => e.name === name).map((e) => e.what);
		expect(seen("app.js")).toContain("modify");
		expect(seen("app.js")).toContain("attrib");
		expect(seen("made.js").some((what) => ["delete", "moved_from"].includes(what))).toBe(true);
		expect(seen("gone.js").some((what) => ["create", "moved_to"].includes(what))).toBe(true);
		// What was not touched fires nothing: no build starts for it.
		expect(seen("same.js")).toEqual([]);
		await story.redo();
		await watcher.until((events) => events.filter((e) => e.name === "made.js").length >= 2);
		expect(seen("made.js").some((what) => ["create", "moved_to"].includes(what))).toBe(true);
		expect(seen("same.js")).toEqual([]);
	});

	test("a dev server that goes on writing survives a rewind, and goes on writing after it", async () => {
		const story = await Story.start({ prepare: "mkdir src cache; echo app > src/app; echo log > server.log" });
		const server = await story.spawn([
			"/usr/bin/python3",
			"-u",
			"-c",
			`import time, os, sys
log = open("server.log", "a", buffering=1)
print("listening", flush=True)
n = 0
while True:
    n += 1
    log.write(f"tick {n}\\n")
    with open("cache/state.tmp", "w") as f: f.write(str(n))
    os.rename("cache/state.tmp", "cache/state")
    time.sleep(0.01)
`,
		]);
		await server.seen(/listening/);
		// The server is the user's: it isn't below the owner of the turn.
		const owner = await story.shell();
		const turn = await story.beginTurn("--owner", String(owner.pid));
		await owner.ask("echo changed > src/app; echo new > src/new; rm -rf nothing; echo $?", /0/);
		await story.endTurn();
		const result = await story.rewindResult(turn);
		expect(result).toMatchObject({ status: 0 });
		expect(await story.read("src/app")).toBe("app\n");
		expect(await story.exists("src/new")).toBe(false);
		const ticks = (await story.read("server.log")).split("\n").length;
		await until(async () => (await story.read("server.log")).split("\n").length > ticks + 5);
		expect(await story.read("server.log")).toContain("log\ntick 1\n");
		expect(server.running()).toBe(true);
	});

	test("a rewind of the turn in which a server wrote gives its files back under it, and the server goes on", async () => {
		const story = await Story.start({ prepare: "echo start > server.log" });
		const holder = await story.hold();
		await holder.call("open", 1, "server.log", "a");
		await story.turn(() => holder.call("append", 1, "request\n"));
		await story.rewind(1);
		expect(await story.read("server.log")).toBe("start\n");
		await holder.call("append", 1, "next request\n");
		expect(await story.read("server.log")).toBe("start\nnext request\n");
	});

	test("a shell that stands in a folder goes on standing there, whatever a rewind does around it", async () => {
		const story = await Story.start({ prepare: "mkdir -p deep/er; echo x > deep/er/x" });
		const before = await story.tree();
		const shell = story.shell();
		await shell.ask("cd deep/er && echo there", /there/);
		await story.turn("echo y > deep/er/y; mv deep moved; echo z > moved/er/x");
		await shell.ask("cat x", /z/);
		await story.rewind(1);
		await story.expectTree(before);
		await shell.ask("cat x; pwd -P", /x\n.*deep\/er/s);
		await shell.ask("ls; echo more > more && rm more && echo fine", /x\nfine/);
		expect(shell.running()).toBe(true);
	});
});
