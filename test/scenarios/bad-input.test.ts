import { describe, expect, test } from "vitest";
import { until } from "./processes.js";
import { expectSentence, Story } from "./story.js";

describe("bad input gets one clear sentence and a non-zero exit, and nothing is lost", () => {
	test("an unknown turn", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		await story.turn("echo g > f");
		const after = await story.tree();
		for (const args of [
			["rewind", "7", "--yes"],
			["show", "7"],
			["turn", "end", "7"],
		]) {
			const result = await story.cli(...args);
			expect(result.status, args.join(" ")).toBe(1);
			expectSentence(result, "TURNFS_UNKNOWN_TURN");
		}
		for (const args of [["rewind", "x", "--yes"], ["rewind"], ["frobnicate"], ["log", "--no-such-flag"]]) {
			const result = await story.cli(...args);
			expect(result.status, args.join(" ")).toBe(2);
			expect(result.stderr).not.toBe("");
			expect(result.stderr).not.toMatch(/^ {4}at /m);
		}
		await story.expectTree(after);
	});

	test("no terminal and no --yes", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		await story.turn("echo g > f");
		for (const args of [["rewind", "1"], ["rewind", "1", "--json"], ["undo"], ["redo"]]) {
			const result = await story.cli(...args);
			expect(result.status, args.join(" ")).toBe(2);
		}
		expect(await story.read("f")).toBe("g\n");
	});

	test("not a project, and no such folder", async () => {
		const story = await Story.start({ prepare: "mkdir sub", mount: false });
		for (const verb of [
			["log"],
			["status"],
			["rewind", "1", "--yes"],
			["turn", "begin"],
			["umount"],
			["show", "last"],
		]) {
			const result = await story.cli(...verb);
			expect(result.status, verb.join(" ")).toBe(1);
			expectSentence(result, "TURNFS_NOT_A_PROJECT");
		}
		const nowhere = await story.run(story.command("log", "-C", "/nowhere/at/all"), { cwd: story.base });
		expect(nowhere.status).toBe(1);
		expectSentence(nowhere);
		expect((await story.sh("ls -A")).stdout).toBe("sub\n");
	});

	test("turn begin when nothing is mounted", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		await story.umount();
		const result = await story.cli("turn", "begin");
		expect(result.status).toBe(1);
		expectSentence(result, "TURNFS_NOT_MOUNTED");
	});

	test("turn begin from a process that stands behind the mount", async () => {
		const story = await Story.start({ prepare: "echo f > f; mkdir sub", mount: false });
		const shell = story.shell();
		await shell.ask("cd sub; echo there", /there/);
		const mounted = await story.cli("mount");
		story.mounted = true;
		expect(mounted.stdout + mounted.stderr).toContain(String(shell.pid));
		const turnfs = story
			.command()
			.map((word) => `'${word}'`)
			.join(" ");
		const answer = await shell.ask(`${turnfs} turn begin; echo "status $?"`, /status \d+/);
		expect(answer).toContain("status 1");
		await until(() => /TURNFS_BEHIND_MOUNT/.test(shell.stderr));
		await shell.ask(`cd "$PWD"; ${turnfs} turn begin; echo "status $?"`, /status 0/);
	});

	test("mounted twice, and a project inside a mounted one", async () => {
		const story = await Story.start({ prepare: "mkdir -p sub/deeper; echo f > f" });
		const twice = await story.cli("mount");
		expect(twice.status).toBe(1);
		expectSentence(twice, "TURNFS_ALREADY_MOUNTED");
		const parent = await story.run(story.command("mount", "-C", story.base), { cwd: "/" });
		expect(parent.status).toBe(1);
		expectSentence(parent);
		expect(await story.read("f")).toBe("f\n");
	});

	test("protected folders: the root, a home, Desktop, Documents, Downloads, system folders, the store itself", async () => {
		const story = await Story.start({
			prepare: "mkdir -p ../home/Desktop ../home/Documents ../home/Downloads; echo f > f",
		});
		await story.umount();
		const { store } = await story.status();
		// Were one not refused, its mount would be seen in there only.
		const aside = ["unshare", "-m"];
		const home = story.project.env.HOME;
		for (const folder of [
			"/",
			home,
			`${home}/Desktop`,
			`${home}/Documents`,
			`${home}/Downloads`,
			"/etc",
			"/usr/bin",
			"/tmp",
			"/proc",
			"/home",
			store.path,
		]) {
			for (const verb of [["mount"], ["run", "--", "true"]]) {
				const result = await story.run(
					[...aside, ...story.command(...verb.slice(0, 1), "-C", folder, ...verb.slice(1))],
					{
						cwd: "/",
					},
				);
				expect(result.status, `${verb[0]} ${folder}`).toBe(verb[0] === "run" ? 125 : 1);
				expectSentence(result, "TURNFS_PROTECTED_FOLDER");
			}
		}
	});

	test("no FUSE", async () => {
		const story = await Story.start({ prepare: "echo f > f", mount: false });
		const quoted = story
			.command("mount")
			.map((word) => `'${word}'`)
			.join(" ");
		const result = await story.run(
			["unshare", "-m", "bash", "-c", `mount --bind /dev/null /dev/fuse && exec ${quoted}`],
			{ cwd: story.base },
		);
		expect(result.status).toBe(1);
		expectSentence(result, "TURNFS_NO_FUSE");
		expect(result.stderr).toMatch(/--device \/dev\/fuse/);
		expect(await story.read("f")).toBe("f\n");
		// And where FUSE is there again, all is well.
		await story.stopDaemon();
		await story.mount();
	});

	test("a busy mount is not torn away, and the error names who holds it", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		const holder = await story.hold();
		await holder.call("open", 1, "f", "r+");
		const busy = await story.cli("umount");
		expect(busy.status).toBe(1);
		expectSentence(busy, "TURNFS_MOUNT_BUSY");
		expect(busy.stderr).toContain(String(holder.pid));
		expect(await holder.call("read", 1, 0, 5)).toBe("f\n");
		await story.ok("umount", "--lazy");
		story.mounted = false;
	});
});
