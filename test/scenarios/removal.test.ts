import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

describe("what a turn removes", () => {
	test("a folder with 5,000 files that went with rm -rf comes back, each file with its inode and mtime", async () => {
		const story = await Story.start({
			prepare: `
				mkdir -p docs keep && echo keep > keep/me
				for d in $(seq 0 49); do mkdir docs/$d; for f in $(seq 0 99); do echo "page $d/$f" > docs/$d/$f.md; done; done
				touch -d '2020-02-02 02:02:02.123456789' docs/7 docs/7/7.md docs
				chmod 600 docs/8/8.md && setfattr -n user.reviewed -v yes docs/9/9.md
			`,
		});
		const before = await story.tree();
		await story.turn("rm -rf docs");
		expect(await story.sh("ls")).toMatchObject({ stdout: "keep\n" });
		await roundTrip(story, [], { before });
	});

	test("empty folders, nested ones too, come back with their modes and times", async () => {
		const story = await Story.start({
			prepare: `
				mkdir -p a/b/c d e/f && chmod 700 a/b && chmod 1777 d
				touch -d '2019-01-01 00:00:00.5' a/b/c d e/f a/b a e
			`,
		});
		await roundTrip(story, ["rmdir d a/b/c a/b", "rm -r e && mkdir -p new/er && rmdir a"]);
	});

	test("a file removed and made again under its name is two files: the first comes back in its own inode", async () => {
		const story = await Story.start({ prepare: "echo first > f; setfattr -n user.a -v 1 f" });
		await roundTrip(story, ["rm f; echo second > f", "rm f; mkdir f; echo third > f/g", "rm -r f; ln -s nowhere f"]);
	});

	test("folders made again under the same name, with other things in them, turn back into the ones before", async () => {
		const story = await Story.start({ prepare: "mkdir -p lib/x; echo 1 > lib/one; echo 2 > lib/x/two" });
		await roundTrip(story, ["rm -rf lib; mkdir lib; echo other > lib/one; mkdir lib/y", "rm -rf lib; echo file > lib"]);
	});

	test("a removed folder that a shell still stands in stays dead, and its return is a live folder", async () => {
		const story = await Story.start({ prepare: "mkdir -p desk/here; echo x > desk/here/file" });
		const before = await story.tree();
		const holder = await story.hold();
		await holder.call("chdir", "desk/here");
		await story.turn("rm -rf desk");
		// As in a plain folder: nothing can be made in it any more.
		expect(await holder.errno("create", "new")).toBe("ENOENT");
		expect(await holder.call("list", ".")).toEqual([]);
		await story.rewind(1);
		await story.expectTree(before);
		expect(await holder.errno("create", "new")).toBe("ENOENT");
		await holder.call("chdir", `${story.dir}/desk/here`);
		await holder.call("create", "new");
		await holder.call("unlink", "new");
		await story.sh("touch -d '2021-01-01' desk/here && rm -rf desk/here && mkdir desk/here");
	});
});
