/**
 * Folders that turnfs does not mount over. A mount over a home or system folder would catch programs that have nothing to do
 * with an agent's work, and a rewind would take their files back too.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { listRuntimeInfos } from "../daemon/runtime-files.js";
import { TurnfsError } from "../errors.js";
import { homeFolder } from "./home.js";
import { isWithin, type MountEntry, turnfsMounts } from "./mount-table.js";
import { enclosingStore, stateDir } from "./store-place.js";

/** Refused themselves; a project may lie below. */
const SYSTEM_TOPS = ["/home", "/media", "/mnt", "/opt", "/srv", "/tmp", "/var", "/run", "/usr", "/snap", "/nix"];

/** Refused with all below, except for what SYSTEM_EXCEPTIONS names. */
const SYSTEM_TREES = [
	"/bin",
	"/boot",
	"/dev",
	"/etc",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/proc",
	"/sbin",
	"/sys",
	"/usr",
	"/nix/store",
	"/lost+found",
];

const SYSTEM_EXCEPTIONS = ["/dev/shm", "/usr/src", "/usr/local/src"];

const PERSONAL_NAMES = ["Desktop", "Documents", "Downloads"];

function isSystemFolder(path: string): boolean {
	if (SYSTEM_TOPS.includes(path) || SYSTEM_EXCEPTIONS.includes(path)) return true;
	// /var/www/site is somebody's work; /var/lib and /var/log are not.
	if (dirname(path) === "/var" || dirname(path) === "/run") return true;
	if (SYSTEM_EXCEPTIONS.some((tree) => isWithin(path, tree))) return false;
	return SYSTEM_TREES.some((tree) => isWithin(path, tree));
}

/** Home folders of people (user ids from 1000, and root) and of whoever runs this. */
function homeFolders(env: NodeJS.ProcessEnv): Set<string> {
	const homes = new Set<string>(["/root", homedir(), homeFolder(env)]);
	let passwd: string;
	try {
		passwd = readFileSync("/etc/passwd", "utf8");
	} catch {
		return homes; // Without a password file (small containers) our own home is all there is to know.
	}
	for (const line of passwd.split("\n")) {
		const [, , uid, , , home] = line.split(":");
		if (home?.startsWith("/") && home !== "/" && Number(uid) >= 1000 && Number(uid) < 60000) homes.add(home);
	}
	return homes;
}

/** The desktop's names for Desktop, Documents and Downloads in other languages (~/.config/user-dirs.dirs). */
function personalFolders(home: string, env: NodeJS.ProcessEnv): Set<string> {
	const folders = new Set(PERSONAL_NAMES.map((name) => join(home, name)));
	const config = env.XDG_CONFIG_HOME?.startsWith("/") ? env.XDG_CONFIG_HOME : join(home, ".config");
	let text: string;
	try {
		text = readFileSync(join(config, "user-dirs.dirs"), "utf8");
	} catch {
		return folders; // No desktop here.
	}
	for (const match of text.matchAll(/^XDG_(?:DESKTOP|DOCUMENTS|DOWNLOAD)_DIR="(.*)"$/gm))
		folders.add((match[1] ?? "").replace("$HOME", home).replace(/\/+$/, ""));
	return folders;
}

/** What a folder is that is never mounted over ("a home folder"), or null. */
export function describeProtected(path: string, env: NodeJS.ProcessEnv = process.env): string | null {
	if (path === "/") return "the root of the filesystem";
	const homes = homeFolders(env);
	if (homes.has(path) || dirname(path) === "/home") return "a home folder";
	for (const home of homes) {
		if (isWithin(home, path)) return `a parent of the home folder ${home}`;
		if (dirname(path) === home && personalFolders(home, env).has(path))
			return `the ${basename(path)} folder of ${home}`;
	}
	const store = enclosingStore(path, env);
	if (store !== null) return `part of turnfs's own store in ${store}`;
	if (isWithin(stateDir(env), path)) return `a parent of the folder for turnfs's stores (${stateDir(env)})`;
	return isSystemFolder(path) ? "a system folder" : null;
}

/** Other projects that are mounted: where each is for real, and where it is seen. */
function mountedProjects(mounts: MountEntry[]): { project: string; at: string }[] {
	const notes = listRuntimeInfos();
	return turnfsMounts(mounts).map((mount) => ({
		project: notes.find((note) => note.mountpoint === mount.at)?.project ?? mount.source,
		at: mount.at,
	}));
}

function refuseNesting(path: string, other: string): void {
	if (isWithin(path, other)) throw new TurnfsError("TURNFS_NESTED_MOUNT", { path, relation: "a folder inside", other });
	if (isWithin(other, path)) throw new TurnfsError("TURNFS_NESTED_MOUNT", { path, relation: "a parent", other });
}

/**
 * Refuses what must not be mounted.
 * @param project real path of the folder to be captured
 * @param at real path of the mount point, most often the same
 * @throws TURNFS_PROTECTED_FOLDER, TURNFS_ALREADY_MOUNTED, TURNFS_NESTED_MOUNT
 */
export function refuseProtected(
	project: string,
	at: string,
	mounts: MountEntry[],
	env: NodeJS.ProcessEnv = process.env,
): void {
	for (const path of new Set([project, at])) {
		const what = describeProtected(path, env);
		if (what !== null) throw new TurnfsError("TURNFS_PROTECTED_FOLDER", { path, what });
	}
	for (const other of mountedProjects(mounts)) {
		if (other.project === project) throw new TurnfsError("TURNFS_ALREADY_MOUNTED", { project, mountpoint: other.at });
		for (const mine of new Set([project, at]))
			for (const theirs of new Set([other.project, other.at])) refuseNesting(mine, theirs);
	}
	if (at !== project && isWithin(at, project))
		throw new TurnfsError("TURNFS_PROTECTED_FOLDER", { path: at, what: "a folder inside the project itself" });
	if (at !== project && isWithin(project, at))
		throw new TurnfsError("TURNFS_PROTECTED_FOLDER", { path: at, what: "a parent of the project itself" });
}
