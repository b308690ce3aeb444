import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { until } from "../scenarios/processes.js";
import { Story } from "../scenarios/story.js";

describe("P11 Transparent: a program can't tell the mount from the folder", () => {
	test("`run` passes stdin, stdout, stderr, arguments and the folder through", async () => {
		const story = await Story.start({ prepare: "mkdir sub", mount: false });
		const command = story.command(
			"run",
			"-C",
			`${story.dir}/sub`,
			"--",
			"bash",
			"-c",
			'cat; pwd; echo "$1" >&2; exit 7',
			"_",
			"a 'b' \"c\"",
		);
		const done = await story.run(command, { input: "from stdin\n", cwd: story.base });
		expect(done).toMatchObject({ status: 7, stdout: `from stdin\n${story.dir}/sub\n` });
		expect(done.stderr).toContain("a 'b' \"c\"\n");
	});

	test.each([
		["exit 0", 0],
		["exit 1", 1],
		["exit 255", 255],
		["kill -TERM $$", 143],
		["kill -KILL $$", 137],
	])("`run` gives back the status of a child that ends with %s", async (script, status) => {
		const story = await Story.start({ prepare: "true", mount: false });
		expect((await story.cli("run", "--", "bash", "-c", script)).status).toBe(status);
		expect((await story.json("log"))[0]).toMatchObject({ state: "ended" });
		expect((await story.status()).mounted).toBe(false);
	});

	test("`run` says 127 for a command that isn't there, 126 for one that can't be executed", async () => {
		const story = await Story.start({ prepare: "echo text > file; chmod 644 file", mount: false });
		expect((await story.cli("run", "--", "no-such-command-anywhere")).status).toBe(127);
		expect((await story.cli("run", "--", "./file")).status).toBe(126);
	});

	test("signals that `run` gets go on to its child, and the turn ends with it", async () => {
		const story = await Story.start({ prepare: "echo f > f", mount: false });
		const run = story.spawn(
			story.command(
				"run",
				"--",
				"bash",
				"-c",
				"trap 'echo got it > signal; exit 5' TERM; echo up; while :; do sleep 0.05; done",
			),
			{
				cwd: story.base,
			},
		);
		await run.seen(/up/);
		run.kill("SIGTERM");
		await until(() => !run.running());
		expect(await story.read("signal")).toBe("got it\n");
		expect((await story.json("log"))[0]).toMatchObject({ turn: 1, state: "ended" });
	});

	test("when `run` itself is killed its turn ends all the same, and it can be rewound", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		const before = await story.tree();
		const run = story.spawn(story.command("run", "--", "bash", "-c", "echo changed > f; echo up; exec sleep 30"), {
			cwd: story.base,
		});
		await run.seen(/up/);
		run.kill("SIGKILL");
		await until(async () => (await story.json("log"))[0].state === "ended");
		await story.rewind(1);
		await story.expectTree(before);
	});

	test("x=$(turnfs turn begin) comes back at once: no process of turnfs holds on to its starter's descriptors", async () => {
		const story = await Story.start({ prepare: "echo f > f", mount: false });
		const turnfs = story
			.command()
			.map((word) => `'${word}'`)
			.join(" ");
		const started = Date.now();
		const done = spawnSync(
			"bash",
			["-c", `m=$(${turnfs} mount); x=$(${turnfs} turn begin); echo "x=$x"; y=$(${turnfs} turn end | cat); echo fine`],
			{
				cwd: story.base,
				env: story.project.env,
				encoding: "utf8",
				timeout: 25_000,
			},
		);
		story.mounted = true;
		expect(done.stdout).toMatch(/x=1\nfine\n/);
		expect(Date.now() - started).toBeLessThan(20_000);
	});

	test("the store is invisible inside the mount, and its name can't be taken", async () => {
		const story = await Story.start({ prepare: "echo f > f" });
		await story.turn("echo g > f");
		const inside = await story.sh(
			"ls -A; test ! -e .turnfs; ! mkdir .turnfs 2> /dev/null; ! mv f .turnfs 2> /dev/null; mkdir sub && mkdir sub/.turnfs && ls -A sub",
		);
		expect(inside.stdout).toBe("f\n.turnfs\n");
	});

	test("inode numbers, link counts, sizes, times and free space are those of the folder", async () => {
		const story = await Story.start({
			prepare: "echo f > f; ln f g; mkdir -p d/e; truncate -s 1M s; ln -s f l; mkfifo p",
			mount: false,
		});
		const look =
			"stat -c '%n %i %h %s %b %f %u:%g %Y %y' . f g d d/e s l p; df --output=size . | tail -1; df --output=fstype . > /dev/null; find . | sort";
		const plain = (await story.sh(look)).stdout;
		await story.mount();
		expect((await story.sh(look)).stdout).toBe(plain);
	});

	test("locks, exec, mmap, O_DIRECT and O_APPEND from several processes work as in a folder", async () => {
		const story = await Story.start({
			prepare: "printf '#!/bin/sh\\necho ran\\n' > exe; chmod 755 exe; cp /bin/true elf; : > log",
		});
		await story.beginTurn();
		const done = await story.sh(`
			./exe; ./elf
			flock log -c 'flock -n log true && echo wrong || echo locked'
			for p in 1 2 3 4; do (for i in $(seq 50); do echo $p >> log; done) & done; wait; wc -l < log
			dd if=/dev/zero of=direct bs=4096 count=4 oflag=direct status=none && stat -c %s direct
			(exec 3< elf; ! python3 -c 'open("elf", "r+b")' 2> /dev/null || echo writable)
		`);
		expect(done.stdout).toBe("ran\nlocked\n200\n16384\nwritable\n");
		await story.endTurn();
		await story.rewind(1);
		await story.expectTree(story.before(1));
	});
});
