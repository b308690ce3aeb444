/**
 * Starts a project's daemon, detached from whoever needs it: own session, cwd `/`, no inherited descriptors. It says on
 * a pipe that it serves, or why it can't. Two starters at once are fine: the second daemon loses quietly.
 */
import { spawn } from "node:child_process";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { TurnfsError } from "../errors.js";
import { ensureStore } from "../store/layout.js";
import { errorResponseSchema } from "./api.js";
import { isMountedInfo, readRuntimeInfo } from "./runtime-files.js";
import { removeStaleMounts } from "./unmount.js";

const startReportSchema = z.union([z.object({ ready: z.literal(true) }), errorResponseSchema]);

/** Ingest makes many short-lived strings; with V8's 16 MiB for them half its time goes into collecting. */
const NODE_OPTIONS = ["--max-semi-space-size=32"];

export interface StartOptions {
	project: string;
	store: string;
	create?: boolean;
}

/** Returns when a daemon serves the project's socket. @throws what kept it from starting */
export async function startDaemon(options: StartOptions): Promise<void> {
	const info = readRuntimeInfo(options.project);
	const mounted = info !== null && isMountedInfo(info);
	// It would hide the project from the daemon, and a store inside it.
	const removed = mounted ? [] : await removeStaleMounts(options.project);
	// While mounted, a store inside the project is hidden: the keeper has it open.
	const storeDir = mounted ? `/proc/${info.keeperPid}/fd/${info.storeFd}` : options.store;
	if (!mounted && options.create) ensureStore(options.store, options.project);
	const logPath = join(storeDir, "daemon.log");
	let log: number;
	try {
		log = openSync(logPath, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
	} catch (error) {
		throw TurnfsError.from(error, "TURNFS_STORE_UNUSABLE", { store: options.store });
	}
	for (const line of removed) writeSync(log, `${line}\n`);
	// The daemon must not count as a process of a turn, whoever starts it.
	const { TURNFS_RUN: _token, ...environment } = process.env;
	const daemon = spawn(
		process.execPath,
		[
			...NODE_OPTIONS,
			fileURLToPath(new URL("./main.js", import.meta.url)),
			"--project",
			options.project,
			"--store",
			options.store,
		],
		{ cwd: "/", detached: true, env: environment, stdio: ["ignore", log, log, "pipe"] },
	);
	closeSync(log);
	daemon.unref();
	const exited = new Promise<string>((resolve) => {
		daemon.on("error", (error) => resolve(error.message));
		daemon.on("exit", (status, signal) => resolve(`it ended at its start (${signal ?? `status ${status}`})`));
	});
	const said = await text(daemon.stdio[3] as Readable);
	if (said === "") throw new TurnfsError("TURNFS_DAEMON_FAILED", { reason: await exited, log: logPath });
	const report = startReportSchema.parse(JSON.parse(said));
	if ("error" in report) throw TurnfsError.fromJson(report.error);
}
