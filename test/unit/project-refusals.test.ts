import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MountEntry } from "../../src/project/mount-table.js";
import { describeProtected, refuseProtected } from "../../src/project/refusals.js";

let top: string;
let env: NodeJS.ProcessEnv;

beforeEach(() => {
	top = realpathSync(mkdtempSync(join(tmpdir(), "turnfs-refusals-")));
	env = { HOME: join(top, "home"), XDG_STATE_HOME: join(top, "home", "state") };
	mkdirSync(join(top, "home", ".config"), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

describe("folders that are never mounted over", () => {
	it.each([
		"/",
		"/home",
		"/home/somebody",
		"/root",
		"/usr",
		"/usr/bin",
		"/etc",
		"/etc/ssl",
		"/var",
		"/var/lib",
		"/proc",
		"/tmp",
		"/dev",
	])("%s is refused", (path) => expect(describeProtected(path, env)).not.toBeNull());

	it.each([
		"/srv/app",
		"/opt/app",
		"/home/somebody/app",
		"/var/www/site",
		"/usr/src/app",
		"/dev/shm/app",
		"/mnt/disk/app",
	])("%s may be a project", (path) => expect(describeProtected(path, env)).toBeNull());

	it("are the own home folder, its Desktop, Documents and Downloads, and parents of it", () => {
		const home = join(top, "home");
		expect(describeProtected(home, env)).toBe("a home folder");
		for (const name of ["Desktop", "Documents", "Downloads"])
			expect(describeProtected(join(home, name), env)).toContain(name);
		expect(describeProtected(join(home, "Documents", "app"), env)).toBeNull();
		expect(describeProtected(top, env)).toContain("a parent of the home folder");
	});

	it("are the desktop's folders in other languages", () => {
		const home = join(top, "home");
		writeFileSync(join(home, ".config", "user-dirs.dirs"), 'XDG_DOCUMENTS_DIR="$HOME/Dokumente"\n');
		expect(describeProtected(join(home, "Dokumente"), env)).toContain("Dokumente");
	});

	it("are turnfs's own folders", () => {
		const store = join(top, "elsewhere");
		mkdirSync(join(store, "journal"), { recursive: true });
		writeFileSync(join(store, "format"), "turnfs-store 1\n{}\n");
		expect(describeProtected(join(store, "journal"), env)).toContain("store");
		expect(describeProtected(join(top, "home", "state", "turnfs", "x"), env)).toContain("store");
		expect(describeProtected(join(top, "home", "state"), env)).toContain("stores");
	});
});

describe("a project beside mounted ones", () => {
	const mount = (at: string, source = at): MountEntry => ({
		id: 9,
		parent: 1,
		at,
		type: "fuse.turnfs",
		source,
		device: "0:99",
	});
	const refuse = (project: string, at: string, mounts: MountEntry[]) => () => refuseProtected(project, at, mounts, env);

	it("is refused inside of one, as a parent of one, and when it is mounted itself", () => {
		expect(refuse("/srv/app/sub", "/srv/app/sub", [mount("/srv/app")])).toThrow(
			/a folder inside of the mounted project/,
		);
		expect(refuse("/srv", "/srv", [])).toThrow(/system folder/);
		expect(refuse("/srv/all", "/srv/all", [mount("/srv/all/app")])).toThrow(/a parent of the mounted project/);
		expect(refuse("/srv/app", "/srv/app", [mount("/srv/app")])).toThrow(/already mounted/);
		expect(refuse("/srv/app", "/srv/view", [mount("/srv/other", "/srv/app")])).toThrow(
			/already mounted at \/srv\/other/,
		);
	});

	it("is refused at a mount point inside or around itself, or at a protected folder", () => {
		expect(refuse("/srv/app", "/srv/app/view", [])).toThrow(/a folder inside the project itself/);
		expect(refuse("/srv/all/app", "/srv/all", [])).toThrow(/a parent of the project itself/);
		expect(refuse("/srv/app", "/etc", [])).toThrow(/system folder/);
	});

	it("is fine beside them", () => {
		expect(refuse("/srv/app2", "/srv/app2", [mount("/srv/app")])).not.toThrow();
		expect(refuse("/srv/app", "/srv/view", [])).not.toThrow();
	});
});
