import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "../scenarios/story.js";

describe("P2 Exact: after `rewind N` the tree equals the tree at the beginning of turn N", () => {
	const everything = `
		mkdir -p d/empty d/sub; echo bytes > d/f; chmod 4711 d/f; chown 7:8 d/f; setfattr -n user.k -v v d/f; setfacl -m u:1000:r d/sub
		ln d/f hard; ln -s d/f soft; mkfifo p; mknod n c 1 7; truncate -s 5M sparse; printf x | dd of=sparse bs=1 seek=3000000 conv=notrunc status=none
		touch -d '2001-02-03 04:05:06.789012345' d/f d/empty sparse; touch -h -d '2002-02-02' soft; touch -d '2003-03-03' d; touch -d '2004-04-04' .
	`;

	test("names, kinds, bytes, modes, owners, times, xattrs, ACLs, targets, links, holes: nothing is forgotten when all goes", async () => {
		const story = await Story.start({ prepare: everything });
		await roundTrip(story, ["rm -rf -- *", "mkdir d; echo other > d/f; ln -s x hard; chmod 700 ."]);
	});

	test("the same on overlayfs", async () => {
		const story = await Story.start({ prepare: everything, filesystem: "overlayfs" });
		await roundTrip(story, [
			"echo more >> d/f; rm sparse; mv d e; chmod 600 n",
			"rm -rf -- *",
			"mkdir d; echo other > d/f; chmod 700 .",
		]);
	});

	test("objects that exist are restored in place: descriptors, inode numbers and links stay joined", async () => {
		const story = await Story.start({ prepare: "echo one > f; ln f g; mkdir d; echo in > d/in" });
		const holder = await story.hold();
		await holder.call("open", 1, "f", "r+");
		await holder.call("open", 2, "d", "folder");
		const [file, folder] = [(await holder.call("stat", 1)).ino, (await holder.call("stat", 2)).ino];
		await story.turn("echo two > f; chmod 600 g; mv d e; echo more > e/more; mv f d");
		await story.rewind(1);
		expect(await holder.call("read", 1, 0, 10)).toBe("one\n");
		expect((await story.sh("stat -c %i f g d")).stdout).toBe(`${file}\n${file}\n${folder}\n`);
		expect((await holder.call("stat", 1)).links).toBe(2);
	});

	test("what was not touched keeps inode and mtime, and is not even opened for writing", async () => {
		const story = await Story.start({
			prepare: "mkdir a b; echo 1 > a/1; echo 2 > b/2; touch -d '2000-01-01' a/1 b/2 b",
		});
		const ctimes = "stat -c '%n %i %y %z' b b/2";
		const then = (await story.sh(ctimes)).stdout;
		await story.turn("echo more >> a/1; rm -rf a; mkdir c");
		await story.rewind(1);
		await story.redo();
		expect((await story.sh(ctimes)).stdout).toBe(then);
	});

	test("the project folder's own mode and times come back, and making the store didn't change them", async () => {
		const story = await Story.start({ prepare: "touch -d '1999-09-09 09:09:09.9' .; chmod 750 .", mount: false });
		const untouched = await story.tree();
		await story.mount();
		await story.expectTree(untouched);
		await story.turn("touch new; chmod 700 .");
		await story.rewind(1);
		await story.expectTree(untouched);
		await story.umount();
		await story.expectTree(untouched);
	});
});
