/** Unmounting by the engine's program, and mounts that nobody serves any more. */
import { spawn } from "node:child_process";
import { statfsSync } from "node:fs";
import { enginePath } from "../engine/engine-path.js";
import { mountOf, readMounts, TURNFS_TYPE, turnfsMounts } from "../project/mount-table.js";
import { logLine } from "./log-line.js";

export async function runUmount(mountpoint: string, lazy: boolean): Promise<{ status: number; complaint: string }> {
	const child = spawn(enginePath(), ["umount", mountpoint, ...(lazy ? ["--lazy"] : [])], {
		cwd: "/",
		stdio: ["ignore", "ignore", "pipe"],
	});
	let complaint = "";
	child.stderr.on("data", (chunk) => {
		complaint += String(chunk);
	});
	return new Promise((resolve, reject) => {
		child.once("error", reject);
		child.once("close", (status) => resolve({ status: status ?? 1, complaint: complaint.trim() }));
	});
}

export function isMountedAt(mountpoint: string): boolean {
	const mount = mountOf(mountpoint, readMounts());
	return mount?.type === TURNFS_TYPE && mount.at === mountpoint;
}

/**
 * Keeper, engine and guard may all have been killed at once: then nobody has unmounted, and the folder answers ENOTCONN. Such a
 * mount holds nothing, so it goes.
 */
export async function removeStaleMount(mountpoint: string, note: (line: string) => void = logLine): Promise<void> {
	if (!isMountedAt(mountpoint)) return;
	try {
		// Not stat: the kernel remembers the folder's attributes, and answers for an engine that has long gone.
		statfsSync(mountpoint);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== "ENOTCONN") throw error;
		const done = await runUmount(mountpoint, true);
		note(`removed the stale mount ${mountpoint}: ${done.status === 0 ? "done" : done.complaint}`);
	}
}

/** The same for every mount of a project, also where its runtime files are lost. @returns what was done, for the log */
export async function removeStaleMounts(project: string): Promise<string[]> {
	const done: string[] = [];
	for (const { source, at } of turnfsMounts(readMounts()))
		if (source === project) await removeStaleMount(at, (line) => done.push(line));
	return done;
}
