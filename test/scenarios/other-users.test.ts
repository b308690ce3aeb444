import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

describe("an ordinary user", () => {
	test("rewinds a shell turn exactly, with modes that shut out the owner", async () => {
		const story = await Story.start({
			user: true,
			prepare: `
				mkdir -p src closed ro; echo a > src/a; echo r > ro/r; echo secret > closed/s
				chmod 444 src/a; chmod 555 ro; chmod 500 closed; echo none > none; chmod 000 none; echo exe > exe; chmod 755 exe
			`,
		});
		await roundTrip(story, [
			"rm -f src/a; echo new > src/a; chmod 755 ro; echo x > ro/x; rm -f ro/r; chmod 600 none; echo n > none",
			"chmod 700 closed; rm -rf closed; mkdir -p src/deep; echo d > src/deep/d; chmod 000 src/deep",
			"chmod 755 src/deep; rm -rf src ro none; ln -s exe l",
		]);
	});

	test("git add, commit and gc work, and are undone", async () => {
		const story = await Story.start({ user: true, prepare: "git init -q .; echo 1 > f; git add f; git commit -qm 1" });
		await roundTrip(story, [
			"echo 2 > f; echo g > g; git add .; git commit -qm 2; git gc -q",
			"git rm -q f; git commit -qm 3",
		]);
	});

	test("other users' files that may be replaced or removed come back, content and all", async () => {
		const story = await Story.start({ user: true, prepare: "echo mine > mine; mkdir d; echo e > d/e" });
		await story.umountIfMounted();
		// Root's files in the user's folder: readable or not, they are not the user's to change, but to remove.
		await story.asRoot(
			"echo root > root-file; echo 2 > d/root; chmod 644 root-file d/root; mkdir root-empty; touch -d 2011-11-11 root-file",
		);
		await story.mount();
		const before = await story.tree();
		await story.turn("rm -f root-file; echo x > t; mv -f t d/root; echo more >> mine");
		const after = await story.tree();
		await story.rewind(1);
		// A copy that had to be made again is the user's own: owner and inode are what an ordinary user can't restore.
		await story.expectTree(before, { copies: true, except: ["root-file", "d/root"] });
		expect(await story.read("root-file")).toBe("root\n");
		expect(await story.read("d/root")).toBe("2\n");
		await story.redo();
		await story.expectTree(after, { copies: true, except: ["root-file", "d/root"] });
	});

	test("what may not be done in the folder may not be done in the mount, and captures nothing", async () => {
		const story = await Story.start({ user: true, prepare: "mkdir d; echo e > d/e" });
		await story.umountIfMounted();
		await story.asRoot("mkdir root-dir; echo x > root-dir/f; echo 1 > root-file; chmod 600 root-file");
		await story.mount();
		const before = await story.tree();
		await story.turn(`
			! rm root-dir/f 2> /dev/null; ! rmdir root-dir 2> /dev/null; ! echo 2>/dev/null >> root-file; ! cat root-file 2> /dev/null
			! chmod 777 root-dir 2> /dev/null; ! chown root d/e 2> /dev/null
		`);
		await story.expectTree(before);
		expect((await story.json("show", "1")).changes).toEqual([]);
	});
});
