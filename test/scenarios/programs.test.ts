/** Turns made by the programs that people and agents really use. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

const identity =
	"git config --global user.name You; git config --global user.email you@example.org; git config --global init.defaultBranch main";

describe("git inside the mount", () => {
	test("init, add, commit, checkout, gc and worktree are undone, the repository of before is whole", async () => {
		const story = await Story.start({
			prepare: `
				${identity}
				git init -q . && for i in $(seq 40); do echo $i > f$i; done && git add . && git commit -qm first
				git checkout -qb topic && echo topic > topic && git add . && git commit -qm topic && git checkout -q main
				echo uncommitted > f1; git add f1; echo more >> f1; echo untracked > new
			`,
		});
		const log = (await story.sh("git log --all --oneline; git status --short")).stdout;
		await roundTrip(story, [
			"git stash -q; git checkout -q topic; sed -i s/3/drei/ f3*; git commit -qam wip; git stash drop -q",
			"git worktree add -q ../turnfs-worktree main; git worktree add -q inside topic~1; echo w > inside/w; rm -rf ../turnfs-worktree",
			"git rm -rq f1*; git commit -qm removed; git reflog expire --expire=now --all; git gc -q --prune=now; git repack -adq",
			"git init -q nested; cd nested; echo n > n; git add n; git commit -qm nested; cd ..; rm -rf .git; git init -q .",
		]);
		expect((await story.sh("git log --all --oneline; git status --short")).stdout).toBe(log);
		expect((await story.sh("git fsck --strict 2>&1 | grep -v dangling || true")).stdout.trim()).toBe("");
	});

	test("a nested repository and a .git file are ordinary files", async () => {
		const story = await Story.start({
			prepare: `
				${identity}
				git init -q . ; git init -q vendor/lib; cd vendor/lib; echo l > l; git add .; git commit -qm l; cd ../..
				git worktree prune; mkdir pointer; echo 'gitdir: ../vendor/lib/.git' > pointer/.git
			`,
		});
		await roundTrip(story, [
			"rm -rf vendor/lib/.git; echo other > pointer/.git; echo x > vendor/lib/l",
			"mv vendor v; rm -rf v",
		]);
	});
});

/** A package of this checkout and all it depends on, as names. */
function closure(...names: string[]): string[] {
	const found = new Set<string>();
	const add = (name: string): void => {
		if (found.has(name)) return;
		found.add(name);
		const { dependencies } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
		for (const dependency of Object.keys(dependencies ?? {})) add(dependency);
	};
	names.forEach(add);
	return [...found];
}

describe("package managers inside the mount", () => {
	test("npm install of a real package set, from tarballs, and its removal, are undone", async () => {
		const npm = "npm --offline --no-audit --no-fund --no-update-notifier --silent";
		const packages = closure("fast-check", "picocolors", "pretty-bytes", "zod").map(
			(name) => `${process.cwd()}/node_modules/${name}`,
		);
		const story = await Story.start({
			prepare: `
				mkdir ../tarballs; (cd ../tarballs; ${npm} pack --ignore-scripts ${packages.join(" ")} > /dev/null)
				echo '{"name":"app","version":"0.0.1"}' > package.json
				mkdir -p node_modules/mine; echo '{"name":"mine"}' > node_modules/mine/package.json
			`,
		});
		await roundTrip(story, [
			`${npm} install ../tarballs/*.tgz; test -f package-lock.json; node -e 'require("fast-check")'`,
			`${npm} uninstall fast-check`,
			`rm -rf node_modules package-lock.json; ${npm} install`,
		]);
	});

	test("a real tree of packages copied in, hard-linked as pnpm does, and pruned, is undone", async () => {
		const story = await Story.start({ prepare: "mkdir ../cas; echo '{}' > package.json" });
		const source = `${process.cwd()}/node_modules`;
		await story.sh(`cp -r ${source}/yargs ${source}/fast-check ${source}/picocolors ../cas/`);
		const cas = await story.treeOf("../cas");
		await roundTrip(story, [
			"mkdir -p node_modules/.pnpm; cp -rl ../cas/. node_modules/.pnpm/ 2> /dev/null || cp -r ../cas/. node_modules/.pnpm/; ln -s .pnpm/yargs node_modules/yargs",
			"cp -rl node_modules/.pnpm/fast-check node_modules/fast-check; rm -rf node_modules/.pnpm/fast-check/lib; sed -i 's/{/{ /' node_modules/fast-check/package.json",
			"rm -rf node_modules",
		]);
		expect(await story.treeOf("../cas")).toEqual(cas);
	});
});

describe("sqlite inside the mount", () => {
	test("a database in WAL mode is as it was, and sound, with readers open", async () => {
		const story = await Story.start({
			prepare: `
				sqlite3 app.db "PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);
					WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) INSERT INTO t SELECT i, hex(randomblob(40)) FROM n" > /dev/null
				sqlite3 rollback.db "CREATE TABLE t(v); INSERT INTO t VALUES(1)"
			`,
		});
		const sum = "sqlite3 app.db 'SELECT count(*), sum(length(v)), max(v) FROM t'";
		const first = (await story.sh(sum)).stdout;
		await story.umount(); // the readers above have left their -shm behind or not: this is the state to come back to
		await story.mount();
		await roundTrip(story, [
			`sqlite3 app.db "UPDATE t SET v='changed' WHERE id%7=0; DELETE FROM t WHERE id>15000; VACUUM"; sqlite3 rollback.db "INSERT INTO t VALUES(2)"`,
			`sqlite3 app.db "PRAGMA wal_autocheckpoint=0; INSERT INTO t(v) VALUES('x'); PRAGMA wal_checkpoint(TRUNCATE); DROP TABLE t" > /dev/null`,
		]);
		expect((await story.sh(sum)).stdout).toBe(first);
		expect(
			(await story.sh("sqlite3 app.db 'PRAGMA integrity_check'; sqlite3 rollback.db 'SELECT count(*) FROM t'")).stdout,
		).toBe("ok\n1\n");
	});

	test("a turn that ends with a connection open and the WAL full is undone under that connection", async () => {
		const story = await Story.start({
			prepare: `sqlite3 app.db "PRAGMA journal_mode=WAL; CREATE TABLE t(v); INSERT INTO t VALUES('before')" > /dev/null`,
		});
		const before = await story.tree();
		const connection = await story.spawn([
			"/usr/bin/python3",
			"-c",
			`import sqlite3, sys
db = sqlite3.connect("app.db", isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint=0")
for line in sys.stdin:
    for row in db.execute(line): print(row)
    print("done", flush=True)
`,
		]);
		await story.turn(async () => {
			for (let i = 0; i < 50; i++) await connection.ask(`INSERT INTO t VALUES('during ${i}')`, /done/);
		});
		const after = await story.tree();
		expect(after.has("app.db-wal")).toBe(true);
		await story.rewind(1);
		await connection.stop();
		await story.expectTree(before, { mtimes: "ignore" });
		expect((await story.sh("sqlite3 app.db 'PRAGMA integrity_check; SELECT * FROM t'")).stdout).toBe("ok\nbefore\n");
	});
});

describe("archives, copies and patches", () => {
	test("tar x over a tree, rsync with --delete, and patch are undone", async () => {
		const story = await Story.start({
			prepare: `
				mkdir -p src/a src/b ../from; for i in $(seq 60); do echo "line $i" > src/a/$i.txt; done; cp -r src/a/. src/b/
				cp -r src/. ../from/; (cd ../from; rm a/1*; for f in a/2*; do echo tarred > $f; done; mkdir c; echo c > c/c; chmod 600 a/3.txt)
				tar -C ../from -cf ../archive.tar .
				(cd ../from; sed -i 's/line/LINE/' b/4*.txt; diff -ruN ../*/src/b b > ../change.patch || true)
				touch -d '2012-12-12 12:12:12.12' src/a/* src/a src
			`,
		});
		await roundTrip(story, [
			"tar -C src -xf ../archive.tar",
			"rsync -a --delete ../from/ src/; rsync -a --inplace --no-whole-file ../from/b/ src/a/",
			"cd src; for i in 1 2 3; do echo \"line $i\" > b/$i.txt; done; printf -- '--- b/1.txt\\n+++ b/1.txt\\n@@ -1 +1 @@\\n-line 1\\n+patched\\n' | patch -p0 -s; printf -- '--- /dev/null\\n+++ made.txt\\n@@ -0,0 +1 @@\\n+made\\n' | patch -p0 -s",
		]);
	});

	test("sed -i, cp over, install, mv between folders and shell redirections are undone", async () => {
		const story = await Story.start({
			prepare: "mkdir a b; for i in 1 2 3 4 5; do echo $i > a/$i; done; echo run > a/run; chmod 755 a/run",
		});
		await roundTrip(story, [
			"sed -i s/1/one/ a/1; cp a/2 a/3; install -m 700 a/4 b/four; mv a/5 b/; cat a/1 >> a/4; : > a/2; tee b/t < a/1 > /dev/null",
			"find . -name '*' -type f -exec sh -c 'echo x >> \"$1\"' _ {} ';'; chmod -R a-w b; rm -rf a",
		]);
	});
});

describe("editors", () => {
	test("vim's saves, with a backup and with a swap file, are undone", async () => {
		const story = await Story.start({
			prepare: "printf 'a\\nb\\nc\\n' > f; ln f hard; ln -s f soft; chmod 640 f; echo t > alone",
		});
		const vim = (settings: string, edit: string, file: string) =>
			`vim -u NONE -N -es -c 'set ${settings}' -c '${edit}' -c 'wq' ${file} < /dev/null`;
		await roundTrip(story, [
			vim("backup writebackup backupcopy=no", "%s/t/T/", "alone"),
			`${vim("nobackup writebackup backupcopy=auto", "%s/b/B/", "f")}; ${vim("backupcopy=yes", "$d", "soft")}`,
			`${vim("backupcopy=auto,breakhardlink", "1d", "hard")}; rm -f .*.swp`,
		]);
	});

	test("the two ways in which editors save, written out, are undone", async () => {
		const story = await Story.start({
			prepare: "echo content > doc.txt; chmod 664 doc.txt; chown 5:6 doc.txt; echo 2 > code.ts",
		});
		const vimStyle = `
import os
st = os.stat("doc.txt")
os.rename("doc.txt", "doc.txt~")
fd = os.open("doc.txt", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o664)
os.write(fd, b"saved\\n"); os.fchown(fd, st.st_uid, st.st_gid); os.fchmod(fd, st.st_mode & 0o7777); os.fsync(fd); os.close(fd)
os.unlink("doc.txt~")
`;
		// VS Code truncates and writes in place; many others write a temporary file and rename it over.
		const inPlace = `
import os
fd = os.open("code.ts", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"const x = 1\\n"); os.fdatasync(fd); os.close(fd)
`;
		const atomic = `
import os
open("code.ts.tmp.123", "w").write("const y = 2\\n"); os.rename("code.ts.tmp.123", "code.ts")
`;
		await roundTrip(
			story,
			[vimStyle, inPlace, atomic, vimStyle].map((code) => `python3 - <<'PY'\n${code}\nPY`),
		);
	});
});
