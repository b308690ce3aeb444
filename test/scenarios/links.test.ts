import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

describe("hard links", () => {
	test("edited through one name, all names have the old bytes again and are still one file", async () => {
		const story = await Story.start({
			prepare: "mkdir d; echo shared > a; ln a b; ln a d/c; echo two > x; ln x y",
		});
		await roundTrip(story, [
			"echo changed >> b; chmod 640 d/c",
			"rm a; echo more >> d/c", // a goes, the others go on
			"rm b d/c; echo alone > b", // now all are gone
			"ln x d/z; rm x y; ln d/z a; echo joined >> a",
		]);
	});

	test("a name that was replaced by a copy is joined to the others again", async () => {
		const story = await Story.start({ prepare: "echo shared > a; ln a b" });
		await roundTrip(story, ["cp a t; echo own >> t; mv t b", "ln -f b a"]);
	});

	test("the number of links inside the mount doesn't count what the store keeps", async () => {
		const story = await Story.start({ prepare: "echo shared > a; ln a b; ln a c; echo n > new" });
		await story.turn("rm b; mv new c");
		expect((await story.sh("stat -c %h a")).stdout).toBe("1\n");
		await story.umount();
		await story.mount();
		expect((await story.sh("stat -c %h a")).stdout).toBe("1\n");
		await story.rewind(1);
		expect((await story.sh("stat -c %h a b c")).stdout).toBe("3\n3\n3\n");
	});

	test("hard links from a package store outside the project stay joined to it, the store is not written to", async () => {
		// The way pnpm fills node_modules: links to files that other projects use too.
		const story = await Story.start({
			prepare: `
				mkdir -p ../pkg-store node_modules/.pnpm/a/node_modules/a
				echo 'module.exports = 1' > ../pkg-store/a.js; echo '{}' > ../pkg-store/b.json
				ln ../pkg-store/a.js node_modules/.pnpm/a/node_modules/a/index.js
				ln -s .pnpm/a/node_modules/a node_modules/a
			`,
		});
		const store = await story.treeOf("../pkg-store");
		const before = await story.tree();
		await story.turn(`
			ls -l node_modules/a/ > /dev/null
			rm -rf node_modules
			mkdir -p node_modules/.pnpm/b
		`);
		await roundTrip(story, [], { before });
		expect(await story.treeOf("../pkg-store")).toEqual(store);
		expect(await story.sameInode("../pkg-store/a.js", "node_modules/.pnpm/a/node_modules/a/index.js")).toBe(true);
	});
});

describe("symlinks", () => {
	test("are kept as they are, dangling and circular ones too, and never followed out of the project", async () => {
		const story = await Story.start({
			prepare: `
				mkdir ../outside; echo precious > ../outside/file; mkdir ../outside/dir; echo p > ../outside/dir/p
				ln -s ../outside/file to-file; ln -s ../outside/dir to-dir; ln -s nowhere dangling; ln -s loop loop
				ln -s "$PWD/real" absolute; echo real > real; mkdir sub; ln -s ../real sub/up
				touch -h -d '2017-07-07 07:07:07.7' to-file dangling
			`,
		});
		const outside = await story.treeOf("../outside");
		await roundTrip(story, [
			"rm to-file dangling loop; ln -s elsewhere to-file; echo file > loop; ln -sfn ../outside to-dir",
			"rm -rf to-dir absolute sub; mkdir to-dir; echo mine > to-dir/p; ln -s a absolute; ln -s to-dir sub",
			"mv to-dir renamed; ln -s ../outside/dir to-dir; touch -h -d '2001-01-01' to-dir",
		]);
		expect(await story.treeOf("../outside")).toEqual(outside);
	});

	test("a write through a symlink to outside is the outside file's own business", async () => {
		const story = await Story.start({ prepare: "mkdir ../outside; echo old > ../outside/f; ln -s ../outside/f link" });
		const before = await story.tree();
		await story.turn("echo new > link");
		await roundTrip(story, [], { before });
		expect(await story.read("../outside/f")).toBe("new\n");
	});
});

describe("FIFOs, sockets and device nodes", () => {
	test("come back with kind, mode, owner and numbers", async () => {
		const socket = (path: string) => `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("${path}")'`;
		const story = await Story.start({
			prepare: `
				mkfifo -m 620 fifo; ${socket("sock")}; mknod null c 1 3; mknod block b 7 200; chmod 640 null; chown 12:34 fifo null
				touch -d '2016-06-06 06:06:06.6' fifo sock null block
			`,
		});
		await roundTrip(story, [
			"rm fifo sock null block",
			`mkfifo null; ${socket("fifo")}; mknod sock c 1 5; echo file > block`,
			"rm fifo; mkfifo fifo; chmod 600 null; touch sock; mv block null",
		]);
	});

	test("a FIFO works while it is there: what is written comes out at the other end", async () => {
		const story = await Story.start({ prepare: "mkfifo pipe" });
		await story.turn("(echo through > pipe) & cat pipe > got; wait");
		expect(await story.read("got")).toBe("through\n");
		await story.rewind(1);
		expect((await story.sh("ls")).stdout).toBe("pipe\n");
	});
});
