import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { projectKey } from "../../src/daemon/runtime-files.js";
import { chooseProject, findProject, requireProject } from "../../src/project/discover.js";
import { chooseStorePlace, findStore, stateDir, writePointer } from "../../src/project/store-place.js";

let top: string;
let env: NodeJS.ProcessEnv;

function folder(...names: string[]): string {
	const path = join(top, ...names);
	mkdirSync(path, { recursive: true });
	return path;
}

function makeStore(path: string): string {
	mkdirSync(path, { recursive: true });
	writeFileSync(join(path, "format"), "turnfs-store 1\n{}\n");
	return path;
}

beforeEach(() => {
	top = realpathSync(mkdtempSync(join(tmpdir(), "turnfs-discover-")));
	env = { HOME: folder("home"), XDG_STATE_HOME: folder("home", "state") };
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

describe("the project of a folder", () => {
	it("is the nearest parent with a store", () => {
		const project = folder("work", "app");
		const deep = folder("work", "app", "src", "lib");
		makeStore(join(stateDir(env), projectKey(project)));
		expect(findProject(deep, env)).toMatchObject({ project, below: "src/lib", by: "store", mountpoint: null });
		expect(requireProject(project, env).below).toBe("");
	});

	it("is found through a symlink by its real path", () => {
		const project = folder("work", "app");
		makeStore(join(project, ".turnfs"));
		symlinkSync(project, join(top, "shortcut"));
		expect(findProject(join(top, "shortcut"), env)?.project).toBe(project);
	});

	it("is never the home folder or above it", () => {
		makeStore(join(top, "home", ".turnfs"));
		makeStore(join(top, ".turnfs"));
		expect(findProject(folder("home", "work"), env)).toBeNull();
	});

	it("is the git work tree's top when something new begins", () => {
		const repository = folder("home", "work", "app");
		writeFileSync(join(repository, ".git"), "gitdir: elsewhere\n");
		expect(chooseProject(folder("home", "work", "app", "src"), env)).toMatchObject({
			project: repository,
			below: "src",
			by: "git",
			store: null,
		});
	});

	it("is the folder itself without git, or when only the home folder is a repository", () => {
		folder("home", ".git");
		const plain = folder("home", "notes");
		expect(chooseProject(plain, env)).toMatchObject({ project: plain, below: "", by: "folder" });
	});

	it("is a clear error where there is none", () => {
		expect(() => requireProject(folder("empty"), env)).toThrow(/is not in a turnfs project/);
		expect(() => requireProject(join(top, "nowhere"), env)).toThrow(/does not exist/);
		writeFileSync(join(top, "file"), "");
		expect(() => requireProject(join(top, "file"), env)).toThrow(/not a folder/);
	});
});

describe("the place of a store", () => {
	it("is the state folder on the same filesystem and mount", () => {
		const project = folder("work", "app");
		expect(chooseStorePlace(project, null, env)).toEqual({
			path: join(top, "home", "state", "turnfs", projectKey(project)),
			kind: "state",
			exists: false,
		});
	});

	it("is inside the project where files can't be renamed into the state folder", () => {
		const project = folder("work", "app");
		const elsewhere = { ...env, XDG_STATE_HOME: "/proc" };
		expect(chooseStorePlace(project, null, elsewhere)).toMatchObject({
			path: join(project, ".turnfs"),
			kind: "inside",
		});
	});

	it("is never a visible folder of the project", () => {
		const project = folder("home", "state");
		expect(chooseStorePlace(project, null, { ...env, XDG_STATE_HOME: project }).kind).toBe("inside");
		expect(() => chooseStorePlace(project, join(project, "history"), env)).toThrow(/inside the project/);
		expect(() => chooseStorePlace(project, top, env)).toThrow(/the project lies in it/);
	});

	it("stays where --store put it", () => {
		const project = folder("work", "app");
		const store = makeStore(join(top, "disk", "history"));
		writePointer(project, store, env);
		expect(findStore(project, env)).toEqual({ path: store, kind: "option", exists: true });
		expect(chooseStorePlace(project, null, env).path).toBe(store);
		expect(() => chooseStorePlace(project, join(top, "other"), env)).toThrow(/this project's store is in/);
	});

	it("is not replaced by an empty one when the disk with it is missing", () => {
		const project = folder("work", "app");
		writePointer(project, join(top, "disk", "history"), env);
		expect(() => chooseStorePlace(project, null, env)).toThrow(/isn't there/);
	});
});
