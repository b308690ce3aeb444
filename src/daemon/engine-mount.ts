/**
 * One mount: its keeper and engine, and the control socket to them. Made by starting a keeper, or by finding one that an
 * earlier daemon started.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlClient } from "../engine/control.js";
import { enginePath } from "../engine/engine-path.js";
import { decodeValue } from "../engine/line-protocol.js";
import { TurnfsError } from "../errors.js";
import type { Lane } from "../store/records.js";
import { showBytes } from "../text/byte-string.js";
import type { Folders } from "./folders.js";
import { logLine } from "./log-line.js";
import { isProcessAlive, processStart } from "./process-life.js";
import { isMountedAt, removeStaleMount, runUmount } from "./unmount.js";

/** How long the processes of a mount may take to end after it has gone. */
const END_TIMEOUT_MS = 10_000;

export interface MountPlan {
	folders: Folders;
	mountpoint: string;
	controlPath: string;
	nextObject: bigint;
	nextSeq: bigint;
	nextPack: number;
	epoch: number;
	/** Of the between that begins with the mount. */
	meta: unknown;
	maxPreimageBytes?: number | undefined;
	onCaptureFailure?: "fail" | "skip" | undefined;
	trace: boolean;
	/** Earlier turns whose processes may still write, newest first. */
	laneOwners: { lane: Lane; pid: number; token: string }[];
	/** True: only for a rewind, at a place nobody knows. */
	temporary: boolean;
}

/** The descriptors' numbers in the keeper. */
export const KEEPER_PROJECT_FD = 3;
export const KEEPER_STORE_FD = 4;

export class EngineMount {
	readonly mountpoint: string;
	readonly control: ControlClient;
	readonly keeperPid: number;
	readonly keeperStart: string | null;
	readonly enginePid: number;
	readonly temporary: boolean;
	/** The engine has closed its control socket: it has ended, or is about to. */
	isGone = false;
	#doors = 0;
	#doorName = "";

	private constructor(
		mountpoint: string,
		control: ControlClient,
		pids: { keeper: number; engine: number },
		temporary: boolean,
	) {
		this.mountpoint = mountpoint;
		this.control = control;
		this.keeperPid = pids.keeper;
		this.keeperStart = processStart(pids.keeper);
		this.enginePid = pids.engine;
		this.temporary = temporary;
		void control.closed.then(() => {
			this.isGone = true;
		});
	}

	/** Starts a keeper, which mounts. @throws TURNFS_MOUNT_FAILED, TURNFS_NO_FUSE, TURNFS_ENGINE_MISSING */
	static async start(plan: MountPlan): Promise<EngineMount> {
		rmSync(plan.controlPath, { force: true });
		const logPath = join(plan.folders.storePath, "engine.log");
		const log = openSync(
			logPath,
			constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW,
			0o600,
		);
		let keeper: ChildProcess;
		try {
			keeper = spawn(enginePath(), keeperArguments(plan), {
				cwd: "/",
				detached: true,
				stdio: ["ignore", "pipe", log, plan.folders.projectFd, plan.folders.storeFd],
			});
		} finally {
			closeSync(log);
		}
		keeper.unref();
		const failed = (reason: string, cause?: unknown) =>
			new TurnfsError(
				"TURNFS_MOUNT_FAILED",
				{ mountpoint: plan.mountpoint, reason, log: join(plan.folders.store, "engine.log") },
				cause,
			);
		const said = await readFirstLine(keeper).catch((error) => {
			throw failed((error as Error).message, error);
		});
		const words = parseWords(said);
		if (!said.startsWith("ready ")) {
			const reason = words.get("message") ?? (said === "" ? "the engine ended without a word" : said);
			if (isMissingFuse(words)) throw new TurnfsError("TURNFS_NO_FUSE", { reason });
			throw failed(reason);
		}
		const pids = { keeper: Number(words.get("keeper")), engine: Number(words.get("pid")) };
		try {
			const control = await ControlClient.connect(plan.controlPath);
			return new EngineMount(plan.mountpoint, control, pids, plan.temporary);
		} catch (error) {
			await runUmount(plan.mountpoint, true);
			throw failed("its control socket can't be reached", error);
		}
	}

	/** Joins a mount that an earlier daemon made. @throws Error when its engine doesn't answer */
	static async attach(controlPath: string, temporary: boolean): Promise<EngineMount> {
		const control = await ControlClient.connect(controlPath);
		const hello = await control.hello();
		return new EngineMount(
			showBytes(hello.mountpoint),
			control,
			{ keeper: hello.keeper, engine: hello.pid },
			temporary,
		);
	}

	/** The name of the store in the mount's root. Doors nest; the last `closeDoor` closes it. */
	async openDoor(): Promise<string> {
		if (this.#doors === 0) this.#doorName = await this.control.openDoor();
		this.#doors++;
		return this.#doorName;
	}

	async closeDoor(): Promise<void> {
		this.#doors--;
		if (this.#doors === 0) await this.control.closeDoor();
	}

	/**
	 * Takes the mount away.
	 * @returns false when something still uses it
	 * @throws TURNFS_MOUNT_FAILED for anything else that keeps it there
	 */
	async unmount(lazy: boolean): Promise<boolean> {
		// Somebody was faster, or its engine has just died.
		if (!isMountedAt(this.mountpoint)) return true;
		const done = await runUmount(this.mountpoint, lazy);
		if (done.status === 0) return true;
		if (done.complaint.includes("EBUSY")) return false;
		throw new TurnfsError("TURNFS_ENGINE_REFUSED", { verb: "umount", reason: done.complaint.replace(/\.$/, "") });
	}

	/** Resolves once keeper and engine have ended; they are killed when they take too long. */
	ended(): Promise<void> {
		return EngineMount.waitForEnd(this.mountpoint, this);
	}

	/** True when the engine has let go of its control socket within that time. */
	endsWithin(timeoutMs: number): Promise<boolean> {
		return Promise.race([this.control.closed.then(() => true), sleep(timeoutMs, false)]);
	}

	/** As `ended`, for a mount that can't be joined. */
	static async waitForEnd(
		mountpoint: string | null,
		pids: { keeperPid: number | null; keeperStart: string | null; enginePid: number | null },
	): Promise<void> {
		const watched = [
			{ pid: pids.keeperPid, start: pids.keeperStart },
			{ pid: pids.enginePid, start: pids.enginePid === null ? null : processStart(pids.enginePid) },
		].filter((one): one is { pid: number; start: string } => one.pid !== null && one.start !== null);
		const deadline = Date.now() + END_TIMEOUT_MS;
		for (;;) {
			const alive = watched.filter(({ pid, start }) => isProcessAlive(pid, start));
			if (alive.length === 0) break;
			if (Date.now() > deadline) {
				logLine(`killing ${alive.map(({ pid }) => pid).join(" and ")}, which did not end by themselves`);
				for (const { pid } of alive) killIfAlive(pid);
				break;
			}
			await sleep(10);
		}
		if (mountpoint !== null) await removeStaleMount(mountpoint);
	}
}

function keeperArguments(plan: MountPlan): string[] {
	const args = ["keeper", "--project-fd", `${KEEPER_PROJECT_FD}`, "--store-fd", `${KEEPER_STORE_FD}`];
	args.push("--at", plan.mountpoint, "--control", plan.controlPath);
	args.push("--next-object", `${plan.nextObject}`, "--next-seq", `${plan.nextSeq}`, "--next-pack", `${plan.nextPack}`);
	args.push("--epoch", `${plan.epoch}`, "--meta", JSON.stringify(plan.meta));
	if (plan.maxPreimageBytes !== undefined) args.push("--max-preimage", `${plan.maxPreimageBytes}`);
	if (plan.onCaptureFailure !== undefined) args.push("--on-capture-failure", plan.onCaptureFailure);
	if (plan.trace) args.push("--trace");
	for (const { lane, pid, token } of plan.laneOwners) args.push("--lane-owner", `${lane}:${pid}:${token}`);
	return args;
}

/** What the keeper says once, before it closes its standard output. */
async function readFirstLine(keeper: ChildProcess): Promise<string> {
	const failed = new Promise<never>((_resolve, reject) => keeper.once("error", reject));
	const said = (async () => {
		let text = "";
		for await (const chunk of keeper.stdout ?? []) text += String(chunk);
		return text.trim();
	})();
	return Promise.race([said, failed]);
}

/** The `key=value` words of a line, values decoded. */
function parseWords(line: string): Map<string, string> {
	const found = new Map<string, string>();
	for (const word of line.split(" ")) {
		const at = word.indexOf("=");
		if (at > 0) found.set(word.slice(0, at), showBytes(decodeValue(word.slice(at + 1))));
	}
	return found;
}

/** Whether the keeper failed because FUSE can't be had here at all. */
function isMissingFuse(words: Map<string, string>): boolean {
	const where = words.get("where") ?? "";
	if (where === "/dev/fuse" || where.startsWith("fusermount")) return true;
	return where === "mount" && ["EPERM", "EACCES", "ENODEV"].includes(words.get("name") ?? "");
}

function killIfAlive(pid: number): void {
	try {
		process.kill(pid, "SIGKILL");
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
	}
}
