/**
 * Which project a command is about, from the folder it was started in (or `-C DIR`).
 *
 * Inside a mount it is the mount's project; else the nearest parent that has a store, not above the home folder and not across
 * filesystems. Verbs that may start something new (`run`, `shell`, `mount`) otherwise take the top of the git work tree, else
 * the folder itself.
 */
import { lstatSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { listRuntimeInfos, readRuntimeInfo } from "../daemon/runtime-files.js";
import { TurnfsError } from "../errors.js";
import { findGitTop } from "./git-top.js";
import { homeFolder } from "./home.js";
import { type MountEntry, mountOf, readMounts, TURNFS_TYPE, turnfsMounts } from "./mount-table.js";
import { findStore, INSIDE_NAME, type StorePlace } from "./store-place.js";

export interface ProjectPlace {
	/** Real path of the project folder. */
	project: string;
	/** Where it is seen through turnfs, or null while nothing is mounted. */
	mountpoint: string | null;
	/** Path of the folder asked for, relative to the project; "" for the project folder itself. */
	below: string;
	/** What made it the project. */
	by: "mount" | "store" | "git" | "folder";
	/** null: no store yet. */
	store: StorePlace | null;
}

/**
 * The real path of a folder given by a person.
 * @throws TURNFS_NO_SUCH_FOLDER
 */
export function resolveFolder(dir: string, mounts: MountEntry[]): string {
	const path = resolve(dir);
	let real: string;
	try {
		real = realpathSync.native(path);
		if (!lstatSync(real).isDirectory())
			throw new TurnfsError("TURNFS_NO_SUCH_FOLDER", { path, reason: "it is not a folder" });
	} catch (error) {
		if (error instanceof TurnfsError) throw error;
		// A mount whose engine has died answers nothing, but its place in the mount table still says whose it is.
		if ((error as NodeJS.ErrnoException).code === "ENOTCONN" && mountOf(path, mounts)?.type === TURNFS_TYPE)
			return path;
		const reason = (error as NodeJS.ErrnoException).code === "ENOENT" ? "it does not exist" : (error as Error).message;
		throw new TurnfsError("TURNFS_NO_SUCH_FOLDER", { path, reason }, error);
	}
	return real;
}

function storeAt(path: string, project: string): StorePlace {
	return { path, kind: path === join(project, INSIDE_NAME) ? "inside" : "state", exists: true };
}

function mountpointOf(project: string, mounts: MountEntry[]): string | null {
	const noted = readRuntimeInfo(project)?.mountpoint;
	const found = turnfsMounts(mounts).find((mount) => mount.at === noted || mount.source === project);
	return found?.at ?? null;
}

/** The project that a folder belongs to already, or null. */
export function findProject(
	dir: string,
	env: NodeJS.ProcessEnv = process.env,
	mounts: MountEntry[] = readMounts(),
): ProjectPlace | null {
	const real = resolveFolder(dir, mounts);
	const mount = mountOf(real, mounts);
	if (mount?.type === TURNFS_TYPE) {
		const note = listRuntimeInfos().find((info) => info.mountpoint === mount.at);
		const project = note?.project ?? mount.source;
		// Without a note (the runtime folder was emptied) a store inside the project stays hidden under the mount.
		const store = note ? storeAt(note.store, project) : findStore(project, env);
		return { project, mountpoint: mount.at, below: relative(mount.at, real), by: "mount", store };
	}
	const device = lstatSync(real).dev;
	const home = homeFolder(env);
	for (let at = real; at !== "/" && at !== home; at = dirname(at)) {
		if (lstatSync(at).dev !== device) break;
		const store = findStore(at, env);
		if (store !== null)
			return { project: at, mountpoint: mountpointOf(at, mounts), below: relative(at, real), by: "store", store };
	}
	return null;
}

/**
 * As findProject, for verbs that need one with a history.
 * @throws TURNFS_NOT_A_PROJECT
 */
export function requireProject(
	dir: string,
	env: NodeJS.ProcessEnv = process.env,
): ProjectPlace & { store: StorePlace } {
	const found = findProject(dir, env);
	if (found === null || found.store === null) throw new TurnfsError("TURNFS_NOT_A_PROJECT", { path: resolve(dir) });
	return { ...found, store: found.store };
}

/** As findProject, for verbs that may start a new project: the git work tree's top, else the folder itself. */
export function chooseProject(dir: string, env: NodeJS.ProcessEnv = process.env): ProjectPlace {
	const mounts = readMounts();
	const found = findProject(dir, env, mounts);
	if (found !== null) return found;
	const real = resolveFolder(dir, mounts);
	const top = findGitTop(real, homeFolder(env));
	const project = top ?? real;
	return {
		project,
		mountpoint: null,
		below: relative(project, real),
		by: top === null ? "folder" : "git",
		store: null,
	};
}
