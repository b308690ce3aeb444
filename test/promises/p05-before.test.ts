import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "../scenarios/story.js";

describe("P5 Before, not after: if the pre-image can't be captured, the operation fails, or passes and is recorded as skipped. Never silent", () => {
	/** A store on a filesystem of its own with next to no room. */
	async function withFullStore(prepare: string, ...flags: string[]): Promise<Story> {
		const story = await Story.start({ prepare, mount: false });
		await story.tinyFilesystem("small-store", 3);
		await story.mount("--store", `${story.base}/small-store/store`, ...flags);
		return story;
	}

	test("with a full store, what can't be kept fails with ENOSPC and is unharmed", async () => {
		const story = await withFullStore(
			"head -c 8000000 /dev/urandom > large; mkdir d; head -c 6000000 /dev/urandom > d/other; echo s > small",
		);
		const before = await story.tree();
		await story.beginTurn();
		const failures = await story.sh(`
			for call in 'os.truncate("large", 0)' 'os.unlink("large")' 'os.rename("small", "d/other")'; do
				python3 -c "
import errno, os
try:
    $call
    print('done')
except OSError as e:
    print(errno.errorcode[e.errno])
"
			done
		`);
		await story.endTurn();
		expect(failures.stdout).toBe("ENOSPC\nENOSPC\nENOSPC\n");
		await story.expectTree(before);
		// And the mount goes on: what can be kept still can.
		await story.turn("echo more >> small");
		await story.rewind("last");
		await story.expectTree(before);
	});

	test("with --on-capture-failure=skip it passes, and log, show and rewind say so", async () => {
		const story = await withFullStore(
			"head -c 8000000 /dev/urandom > large; echo s > small",
			"--on-capture-failure=skip",
		);
		await story.turn("truncate -s 10 large; echo t > small");
		expect((await story.sizes("large")).size).toBe(10);
		expect((await story.json("log"))[0].skipped).toBeGreaterThan(0);
		const shown = await story.json("show", "1");
		expect(shown.changes.find((c: { path: string }) => c.path === "large").skipped).toMatch(/\S/);
		const rewind = await story.rewindResult(1);
		expect(rewind.status).toBe(4);
		expect(JSON.parse(rewind.stdout).skipped).toMatchObject([{ path: "large", reason: expect.stringMatching(/\S/) }]);
		expect(await story.read("small")).toBe("s\n");
	});

	test("--max-preimage lets larger changes pass, recorded as skipped in log, show and rewind", async () => {
		const story = await Story.start({
			prepare: "head -c 300000 /dev/urandom > large; head -c 1000 /dev/urandom > small; ln large second",
			mountFlags: ["--max-preimage", "64K"],
		});
		await story.turn("head -c 1000 /dev/zero > large; echo changed > small; chmod 600 large");
		expect(await story.json("log")).toMatchObject([{ turn: 1, skipped: expect.any(Number) }]);
		expect((await story.json("log"))[0].skipped).toBeGreaterThan(0);
		const { changes } = await story.json("show", "1");
		const change = (path: string) => changes.find((c: { path: string }) => c.path === path);
		expect(change("small").skipped).toBeUndefined();
		expect([change("large")?.skipped, change("second")?.skipped].some((reason) => /\S/.test(reason ?? ""))).toBe(true);
		const rewind = await story.rewindResult(1);
		expect(rewind.status).toBe(4);
		expect(JSON.parse(rewind.stdout).skipped.length).toBeGreaterThan(0);
		// What was kept is restored all the same.
		expect((await story.sh("stat -c %a large; stat -c %s small")).stdout).toBe("644\n1000\n");
	});

	test("a deleted large file needs no copy: --max-preimage does not skip it", async () => {
		const story = await Story.start({
			prepare: "head -c 300000 /dev/urandom > large",
			mountFlags: ["--max-preimage", "64K"],
		});
		await roundTrip(story, ["rm large"]);
	});
});
