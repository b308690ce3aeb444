/**
 * Where a project's store is, and where a new one goes:
 *
 *  1. `--store DIR`: there. A pointer in the state folder lets later calls find it.
 *  2. `$XDG_STATE_HOME/turnfs/<key>/`, if files can be renamed from the project into it (same filesystem, same mount): deleting
 *     a file then costs a rename, and the project stays free of anything of ours.
 *  3. `<project>/.turnfs/`.
 *
 * Nothing is made here; the daemon does that when it first opens the store.
 */
import {
	closeSync,
	existsSync,
	fstatSync,
	lstatSync,
	mkdirSync,
	openSync,
	readFileSync,
	renameSync,
	writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { projectKey } from "../daemon/runtime-files.js";
import { TurnfsError } from "../errors.js";
import { isWithin } from "./mount-table.js";

/** The store's name when it lies in the project folder itself. */
export const INSIDE_NAME = ".turnfs";

export interface StorePlace {
	path: string;
	kind: "state" | "inside" | "option";
	/** Whether a store is there already. */
	exists: boolean;
}

/** `$XDG_STATE_HOME/turnfs`: stores, and pointers to stores elsewhere. Need not exist. */
export function stateDir(env: NodeJS.ProcessEnv = process.env): string {
	const base = env.XDG_STATE_HOME;
	return join(base?.startsWith("/") ? base : join(env.HOME || homedir(), ".local", "state"), "turnfs");
}

/** A folder is a store when it has the file that names its layout; the daemon writes that first. */
export function isStore(folder: string): boolean {
	try {
		return lstatSync(join(folder, "format")).isFile();
	} catch {
		return false;
	}
}

function pointerPath(project: string, env: NodeJS.ProcessEnv): string {
	return join(stateDir(env), `${projectKey(project)}.store`);
}

function readPointer(project: string, env: NodeJS.ProcessEnv): string | null {
	try {
		const target = readFileSync(pointerPath(project, env), "utf8").trim();
		return target.startsWith("/") ? target : null;
	} catch {
		return null;
	}
}

/**
 * Makes later calls find a store that `--store` put elsewhere.
 * @param store absolute path
 */
export function writePointer(project: string, store: string, env: NodeJS.ProcessEnv = process.env): void {
	mkdirSync(stateDir(env), { recursive: true, mode: 0o700 });
	const path = pointerPath(project, env);
	writeFileSync(`${path}.new`, `${store}\n`, { mode: 0o600 });
	renameSync(`${path}.new`, path);
}

/**
 * The store that a project already has, or null.
 * @param project real path of a folder; it is looked at, never scanned
 */
export function findStore(project: string, env: NodeJS.ProcessEnv = process.env): StorePlace | null {
	const pointed = readPointer(project, env);
	// Even when it isn't there now (a disk not plugged in): another, empty store must not quietly take its place.
	if (pointed !== null) return { path: pointed, kind: "option", exists: isStore(pointed) };
	const state = join(stateDir(env), projectKey(project));
	if (isStore(state)) return { path: state, kind: "state", exists: true };
	const inside = join(project, INSIDE_NAME);
	return isStore(inside) ? { path: inside, kind: "inside", exists: true } : null;
}

/** Mount and device of a folder: rename(2) works between two folders only where both are equal. */
function whereabouts(folder: string): { mount: string; device: number } | null {
	let fd: number;
	try {
		fd = openSync(folder, "r");
	} catch {
		return null;
	}
	try {
		const info = readFileSync(`/proc/self/fdinfo/${fd}`, "utf8");
		return { mount: /^mnt_id:\s*(\d+)/m.exec(info)?.[1] ?? "", device: fstatSync(fd).dev };
	} finally {
		closeSync(fd);
	}
}

function nearestExisting(path: string): string {
	let folder = path;
	while (!existsSync(folder) && folder !== "/") folder = dirname(folder);
	return folder;
}

/** Whether files of `project` can be renamed into (a folder to be made at) `place`. */
export function canRenameInto(project: string, place: string): boolean {
	const from = whereabouts(project);
	const to = whereabouts(nearestExisting(place));
	return from !== null && to !== null && from.device === to.device && from.mount === to.mount;
}

/**
 * The store of a project: the one it has, else the place for a new one. Call it while the project is not mounted.
 * @param option value of `--store`, absolute
 * @throws TURNFS_STORE_UNUSABLE when `--store` names a folder that can't be a store of this project
 */
export function chooseStorePlace(
	project: string,
	option: string | null = null,
	env: NodeJS.ProcessEnv = process.env,
): StorePlace {
	const existing = findStore(project, env);
	if (option !== null) {
		if (existing?.exists && existing.path !== option)
			throw new TurnfsError("TURNFS_STORE_UNUSABLE", {
				store: option,
				reason: `this project's store is in ${existing.path}`,
			});
		const inside = join(project, INSIDE_NAME);
		if (option !== inside && isWithin(option, project))
			throw new TurnfsError("TURNFS_STORE_UNUSABLE", {
				store: option,
				reason: `inside the project it can only be ${inside}`,
			});
		if (isWithin(project, option))
			throw new TurnfsError("TURNFS_STORE_UNUSABLE", { store: option, reason: "the project lies in it" });
		return { path: option, kind: option === inside ? "inside" : "option", exists: existing?.exists === true };
	}
	if (existing !== null) {
		if (!existing.exists)
			throw new TurnfsError("TURNFS_STORE_UNUSABLE", {
				store: existing.path,
				reason: "`--store` chose it for this project earlier, and it isn't there",
			});
		return existing;
	}
	const state = join(stateDir(env), projectKey(project));
	if (!isWithin(state, project) && canRenameInto(project, state)) return { path: state, kind: "state", exists: false };
	return { path: join(project, INSIDE_NAME), kind: "inside", exists: false };
}

/** The store that a path lies in (or is), or null: such a folder is no project. */
export function enclosingStore(path: string, env: NodeJS.ProcessEnv = process.env): string | null {
	if (isWithin(path, stateDir(env))) return stateDir(env);
	for (let folder = path; ; folder = dirname(folder)) {
		if (isStore(folder) && readFileSync(join(folder, "format"), "latin1").startsWith("turnfs-store ")) return folder;
		if (folder === "/") return null;
	}
}
