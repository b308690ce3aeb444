import { describe, test } from "vitest";
import { roundTrip, Story } from "./story.js";

describe("what a turn renames", () => {
	test("a folder renamed, edited below, and renamed again goes back to its first name with its first bytes", async () => {
		const story = await Story.start({
			prepare: "mkdir -p lib/deep/er; for i in 1 2 3 4; do echo $i > lib/deep/$i.js; done; echo e > lib/deep/er/e.js",
		});
		await roundTrip(story, [
			`mv lib core; sed -i s/1/one/ core/deep/1.js; echo new > core/deep/new.js; rm core/deep/2.js
			 mv core/deep core/shallow; echo more >> core/shallow/3.js; mv core/shallow/er er; echo x > er/x; mv core engine`,
			"mv engine/shallow/4.js .; rm -rf engine; mkdir lib; mv er lib/deep",
		]);
	});

	test("names that change places, in pairs and in circles, find back", async () => {
		const story = await Story.start({
			prepare:
				"for f in a b c; do echo $f > $f; done; mkdir d e f; for d in d e f; do echo $d > $d/in; done; echo s > s",
		});
		const holder = await story.hold();
		const before = await story.tree();
		await story.turn(async () => {
			await story.sh("mv a t; mv b a; mv c b; mv t c"); // a circle of files
			await story.sh("mv d t; mv e d; mv f e; mv t f"); // a circle of folders
			await holder.call("exchange", "s", "d"); // a file and a folder
			await holder.call("exchange", "a", "e/in");
			await story.sh("echo changed >> c; echo changed > f/in; mv f d2; mv e f");
		});
		await roundTrip(story, [], { before });
	});

	test("a folder moved into another, and that one into a third, comes out again", async () => {
		const story = await Story.start({ prepare: "mkdir -p a/x b c; echo 1 > a/x/1; echo 2 > b/2; echo 3 > c/3" });
		await roundTrip(story, ["mv a b/; mv b c/; echo more > c/b/a/x/1", "mv c/b/a .; mv c/b a/; mv c a/b/"]);
	});

	test("parent and child that change roles are taken apart and put together the other way round", async () => {
		const story = await Story.start({ prepare: "mkdir -p a/b; echo a > a/in-a; echo b > a/b/in-b" });
		await roundTrip(story, ["mv a/b b; mv a b/a"]);
	});

	test("a file that was renamed over comes back in its own inode, and so does the one that replaced it", async () => {
		const story = await Story.start({
			prepare: "echo old > target; chmod 600 target; echo new > source; ln target other-name; mkdir d; echo 3 > d/f",
		});
		await roundTrip(story, ["mv source target", "echo again > x; mv x target; mv other-name d/f"]);
	});

	test("an empty folder that was renamed over comes back", async () => {
		const story = await Story.start({
			prepare: "mkdir empty full; chmod 711 empty; touch -d '2018-08-08' empty; echo x > full/x",
		});
		await roundTrip(story, ["mv -T full empty", "mkdir full again; mv -T again full"]);
	});

	test("a rename that fails leaves no trace, and a rename onto itself none either", async () => {
		const story = await Story.start({ prepare: "mkdir -p d/sub e; echo 1 > a; echo 2 > e/in; ln a b" });
		const before = await story.tree();
		await story.turn(`
			! mv -T d e 2>/dev/null
			! mv d d/sub 2>/dev/null
			python3 -c 'import os; os.rename("a", "a"); os.rename("a", "b"); os.rename("d", "d")'
		`);
		await story.expectTree(before);
		await roundTrip(story, [], { before });
	});
});
