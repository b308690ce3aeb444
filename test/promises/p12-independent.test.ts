import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "../scenarios/story.js";

describe("P12 Independent of git: no repository needed, none touched", () => {
	test("works where there is no git at all, in a folder that is no repository", async () => {
		const story = await Story.start({ prepare: "echo f > f; mkdir d; echo g > d/g", mount: false });
		const bin = join(story.base, "bin");
		mkdirSync(bin);
		const tools = (
			await story.sh(
				"for t in bash node python3 cat rm mv mkdir ls test fusermount3 mount umount env; do command -v $t || true; done",
			)
		).stdout;
		for (const path of new Set(tools.trim().split("\n")))
			if (path.startsWith("/")) symlinkSync(path, join(bin, path.split("/").at(-1) ?? ""));
		story.env.PATH = bin;
		expect((await story.run(["/bin/bash", "-c", "command -v git"])).status).not.toBe(0);
		await story.mount();
		await roundTrip(story, ["echo changed > f; rm -rf d", "mkdir d; mv f d"]);
		expect((await story.cli("run", "--", "bash", "-c", "echo run > f")).status).toBe(0);
	});

	test("a repository is not touched by anything turnfs does: no ref, no object, no index, no config", async () => {
		const story = await Story.start({
			prepare:
				"git init -q .; echo f > f; git add f; git commit -qm f; echo more >> f; git stash -q; echo x > f; git add f; echo y > f",
			mount: false,
		});
		const git = await story.treeOf(".git");
		await story.mount();
		await story.turn("echo agent > f; echo new > new");
		await story.rewind(1);
		await story.redo();
		await story.rewind(1);
		await story.umount();
		await story.ok("log", "--all");
		expect(await story.treeOf(".git")).toEqual(git);
	});

	test("nested repositories, submodules and worktrees are ordinary files", async () => {
		const story = await Story.start({
			prepare: `
				git init -q -b main ../upstream; (cd ../upstream; echo u > u; git add u; git commit -qm u)
				git init -q -b main .; git -c protocol.file.allow=always submodule --quiet add ../upstream sub > /dev/null; git commit -qm sub
				git worktree add -q ../tree -b tree; git init -q nested; echo n > nested/n
			`,
		});
		await roundTrip(story, [
			"cd sub; echo changed > u; git commit -qam changed; cd ..; git add sub; git commit -qm bump; cd nested; git add n; git commit -qm n",
			"git submodule --quiet deinit -f sub; rm -rf .git/modules/sub nested/.git; git worktree prune",
		]);
		expect((await story.sh("git -C ../tree status --short")).stdout).toBe("");
	});
});
