/**
 * The runtime folder: sockets and one JSON file per project that is mounted or has a daemon. It is how a command line
 * finds a project from inside its mount, where the store is hidden.
 */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { TurnfsError } from "../errors.js";
import { isProcessAlive } from "./process-life.js";

/** What is known about one project's processes. Paths are as the kernel resolves them. */
export const runtimeInfoSchema = z.object({
	project: z.string(),
	store: z.string(),
	/** null while nothing is mounted. */
	mountpoint: z.string().nullable(),
	/** The keeper holds the project's and the store's folders as descriptors `projectFd` and `storeFd`. */
	keeperPid: z.number().int().nullable(),
	/** Start time of the keeper (clock ticks after boot), so that a reused pid is not taken for it. */
	keeperStart: z.string().nullable(),
	enginePid: z.number().int().nullable(),
	projectFd: z.number().int(),
	storeFd: z.number().int(),
	daemonPid: z.number().int().nullable(),
	daemonStart: z.string().nullable(),
	/** True for a mount that only a rewind uses, at a place of its own. */
	privateMount: z.boolean(),
});
export type RuntimeInfo = z.infer<typeof runtimeInfoSchema>;

export interface RuntimePaths {
	/** The daemon's HTTP socket. */
	socket: string;
	/** The engine's control socket. */
	control: string;
	info: string;
	/** Folder for a rewind's private mount. */
	privateMount: string;
}

/** sockaddr_un has room for 108 bytes, the last of them 0. */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * `$XDG_RUNTIME_DIR/turnfs`, else `/tmp/turnfs-<uid>`; made with mode 0700.
 * @throws TURNFS_RUNTIME_DIR when it belongs to somebody else or others may write to it
 */
export function runtimeDir(): string {
	const uid = process.getuid?.() ?? 0;
	const base = process.env.XDG_RUNTIME_DIR;
	const dir = base?.startsWith("/") ? join(base, "turnfs") : `/tmp/turnfs-${uid}`;
	mkdirSync(dir, { recursive: true, mode: 0o700 });
	const stat = lstatSync(dir);
	if (!stat.isDirectory()) throw new TurnfsError("TURNFS_RUNTIME_DIR", { path: dir, reason: "it is not a folder" });
	if (stat.uid !== uid) throw new TurnfsError("TURNFS_RUNTIME_DIR", { path: dir, reason: `uid ${stat.uid} owns it` });
	if ((stat.mode & 0o077) !== 0) {
		throw new TurnfsError("TURNFS_RUNTIME_DIR", {
			path: dir,
			reason: `its mode is ${(stat.mode & 0o777).toString(8)}, not 700`,
		});
	}
	return dir;
}

/** The name under which a project's runtime files stand. @param project its real path */
export function projectKey(project: string): string {
	const name =
		basename(project)
			.replace(/[^A-Za-z0-9._-]/g, "_")
			.slice(0, 32) || "root";
	return `${name}-${createHash("sha256").update(project).digest("hex").slice(0, 16)}`;
}

/** @throws TURNFS_RUNTIME_DIR, also when a socket's path would be longer than the kernel allows */
export function runtimePaths(project: string): RuntimePaths {
	const dir = runtimeDir();
	const stem = join(dir, projectKey(project));
	if (Buffer.byteLength(`${stem}.sock`) > MAX_SOCKET_PATH_BYTES) {
		throw new TurnfsError("TURNFS_RUNTIME_DIR", { path: dir, reason: "its path is too long for a socket" });
	}
	return {
		socket: `${stem}.sock`,
		control: `${stem}.ctl`,
		info: `${stem}.json`,
		privateMount: `${stem}.mnt`,
	};
}

/** The project's runtime file, or null when there is none (or it can't be read as one). */
export function readRuntimeInfo(project: string): RuntimeInfo | null {
	return parseInfo(runtimePaths(project).info);
}

/** Every project that has a runtime file, whether or not its processes still live. */
export function listRuntimeInfos(): RuntimeInfo[] {
	const dir = runtimeDir();
	return readdirSync(dir)
		.filter((name) => name.endsWith(".json"))
		.map((name) => parseInfo(join(dir, name)))
		.filter((info) => info !== null);
}

export function writeRuntimeInfo(info: RuntimeInfo): void {
	const { info: path } = runtimePaths(info.project);
	const draft = `${path}.${process.pid}.tmp`;
	writeFileSync(draft, JSON.stringify(info), { mode: 0o600 });
	renameSync(draft, path);
}

export function removeRuntimeInfo(project: string): void {
	rmSync(runtimePaths(project).info, { force: true });
}

/** True when the mount that the file speaks of is there: its keeper lives. */
export function isMountedInfo(info: RuntimeInfo): boolean {
	return info.mountpoint !== null && info.keeperPid !== null && isProcessAlive(info.keeperPid, info.keeperStart);
}

function parseInfo(path: string): RuntimeInfo | null {
	let text: string;
	try {
		text = readFileSync(path, "utf8");
	} catch {
		// It went between listing and reading: its project has been unmounted.
		return null;
	}
	try {
		return runtimeInfoSchema.parse(JSON.parse(text));
	} catch {
		// Written by another version, or cut off by a full disk. Nothing depends on it that can't be found again.
		return null;
	}
}
