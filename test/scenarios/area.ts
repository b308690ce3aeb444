/**
 * Where a story happens: a folder of its own with the project, the store's place, the sockets and a home in it, on a
 * filesystem of the wanted kind.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Comparison } from "./tree.js";

export interface Area {
	base: string;
	project: string;
	env: NodeJS.ProcessEnv;
	/** null: root. */
	user: { uid: number; gid: number } | null;
	/** What can't be compared on this filesystem. */
	comparison: Comparison;
	/** Takes all away, after the processes that stand for the project have gone. */
	remove(pids: number[], unmounts: string[]): Promise<void>;
}

const USER = { uid: 1000, gid: 1000 };

export function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

/** Ends the processes of one project, which status named: gently, then not. */
async function endProcesses(pids: number[]): Promise<void> {
	for (const signal of ["SIGTERM", "SIGKILL"] as const) {
		for (const pid of pids.filter(isAlive)) process.kill(pid, signal);
		for (let waited = 0; waited < 3000 && pids.some(isAlive); waited += 20) await sleep(20);
	}
}

export async function makeArea(options: { user: boolean; filesystem: "ext4" | "overlayfs" }): Promise<Area> {
	const base = mkdtempSync(join(tmpdir(), "turnfs-story-"));
	const user = options.user ? USER : null;
	chmodSync(base, 0o755);
	const folder = (name: string, mode = 0o755): string => {
		const path = join(base, name);
		mkdirSync(path, { mode });
		if (user !== null) chownSync(path, user.uid, user.gid);
		return path;
	};
	if (user !== null) chownSync(base, user.uid, user.gid);
	const project = folder("project");
	const home = folder("home");
	const env: NodeJS.ProcessEnv = {
		PATH: process.env["PATH"],
		HOME: home,
		XDG_STATE_HOME: folder("state", 0o700),
		XDG_RUNTIME_DIR: folder("run", 0o700),
		LANG: "C.UTF-8",
		GIT_CONFIG_NOSYSTEM: "1",
		GIT_AUTHOR_NAME: "You",
		GIT_AUTHOR_EMAIL: "you@example.org",
		GIT_COMMITTER_NAME: "You",
		GIT_COMMITTER_EMAIL: "you@example.org",
	};
	for (const name of ["TURNFS_ENGINE", "TURNFS_TRACE"]) if (process.env[name]) env[name] = process.env[name];
	return {
		base,
		project,
		env,
		user,
		comparison: {},
		async remove(pids, unmounts) {
			await endProcesses(pids);
			for (const at of unmounts) execFileSync("umount", [at]);
			rmSync(base, { recursive: true, force: true, maxRetries: 3 });
		},
	};
}
