/** Ends the product's processes of one test project, and finds what should have gone and has not. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "./commands.js";
import { mountsBelow } from "./mounts.js";
import type { TempProject } from "./temp-project.js";

interface FoundProcess {
	pid: number;
	/** engine: keeper, engine or fsop; daemon: a node process of the product; other: started by the test's own scripts. */
	role: "engine" | "daemon" | "other";
	command: string;
}

/** Unmounts and stops the daemon as a user would. Returns what went wrong. */
export async function stopEverything(project: TempProject, id: string): Promise<string[]> {
	const troubles: string[] = [];
	for (const found of processesOf(id)) if (found.role === "other") kill(found.pid, "SIGKILL");
	if (fuseMounts(project).length > 0) {
		await project.turnfs(["umount"], { expectStatus: null, timeoutMs: 20_000 }).catch((error: Error) => {
			troubles.push(`umount hung: ${error.message}`);
		});
		for (const mount of fuseMounts(project)) {
			troubles.push(`still mounted after \`turnfs umount\`: ${mount.mountpoint}`);
			await abortMount(mount.minor, mount.mountpoint);
		}
	}
	// The daemon stays for a while after the last call; a test does not wait for that.
	for (const found of processesOf(id)) if (found.role === "daemon") kill(found.pid, "SIGTERM");
	return troubles;
}

/** Processes and mounts that are still there, after a moment of grace, and reports of sanitizers. */
export async function findLeftovers(project: TempProject, id: string): Promise<string[]> {
	const deadline = Date.now() + 10_000;
	let left = processesOf(id);
	while (left.length > 0 && Date.now() < deadline) {
		await sleep(20);
		left = processesOf(id);
	}
	const troubles = left.map((p) => `left-over ${p.role} process ${p.pid}: ${p.command}`);
	for (const found of left) kill(found.pid, "SIGKILL");
	return [...troubles, ...findSanitizerReports(project)];
}

/** The stores of the project: where they may lie. */
export function storesOf(project: TempProject): string[] {
	const inState = join(project.top, "state", "turnfs");
	const names = existsSync(inState) ? readdirSync(inState) : [];
	// `--store DIR` leaves a file there that says where the store is.
	const stores = names
		.map((name) => (name.endsWith(".store") ? readFileSync(join(inState, name), "utf8").trim() : join(inState, name)))
		.filter((store) => existsSync(store));
	const inProject = join(project.behind, ".turnfs");
	return existsSync(inProject) ? [...stores, inProject] : stores;
}

function findSanitizerReports(project: TempProject): string[] {
	const sign = /ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error: |Sanitizer:DEADLYSIGNAL/;
	const logs = storesOf(project).flatMap((store) =>
		readdirSync(store)
			.filter((name) => name.endsWith(".log"))
			.map((name) => join(store, name)),
	);
	return logs.flatMap((log) => {
		const text = readFileSync(log, "utf8");
		const at = text.search(sign);
		return at < 0 ? [] : [`a sanitizer reported in ${log}:\n${text.slice(at, at + 3_000)}`];
	});
}

function fuseMounts(project: TempProject) {
	return mountsBelow(project.top).filter((mount) => mount.type.startsWith("fuse"));
}

async function abortMount(connection: number, mountpoint: string): Promise<void> {
	await runCommand(
		[
			"/bin/sh",
			"-c",
			'c=/sys/fs/fuse/connections; [ -n "$(ls $c)" ] || mount -t fusectl fusectl $c; echo 1 > $c/$0/abort; umount -l -- "$1"',
			String(connection),
			mountpoint,
		],
		{ expectStatus: null },
	);
}

/** By the mark that every process of the test carries in its environment. */
function processesOf(id: string): FoundProcess[] {
	const mark = `TURNFS_TEST_PROJECT=${id}`;
	const found: FoundProcess[] = [];
	for (const name of readdirSync("/proc")) {
		if (!/^\d+$/.test(name)) continue;
		try {
			if (!readFileSync(`/proc/${name}/environ`, "latin1").split("\0").includes(mark)) continue;
			const argv = readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0");
			// A zombie has neither; it is its parent's business.
			if (argv.join("") === "") continue;
			found.push({ pid: Number(name), role: roleOf(argv), command: argv.join(" ").trim() });
		} catch {
			// It ended meanwhile.
		}
	}
	return found;
}

function roleOf(argv: string[]): FoundProcess["role"] {
	if (argv[0]?.endsWith("turnfs-engine")) return "engine";
	return argv.some((word) => word.includes("/dist/daemon/")) ? "daemon" : "other";
}

function kill(pid: number, signal: NodeJS.Signals): void {
	try {
		process.kill(pid, signal);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
	}
}
