/**
 * The daemon's program: `main.js --project DIR --store DIR`. It says on descriptor 3, once, that it serves or why it can't (JSON),
 * and goes when nothing has needed it for a while.
 */
import { closeSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { TurnfsError } from "../errors.js";
import { DaemonClient } from "./client.js";
import { finishInterruptedRewinds } from "./interrupted-rewinds.js";
import { logLine } from "./log-line.js";
import { ProjectDaemon } from "./project-daemon.js";
import { runtimePaths } from "./runtime-files.js";
import { startServer } from "./server.js";
import { watchProject } from "./watch.js";

const REPORT_FD = 3;
/** How long it stays after the last mount, call and work has ended. */
const IDLE_MS = Number(process.env.TURNFS_DAEMON_IDLE_MS ?? 30_000);
/** How long a second daemon waits for the first one, which has the store's lock, to serve. */
const FIRST_DAEMON_MS = 15_000;

function report(message: object): void {
	writeSync(REPORT_FD, JSON.stringify(message));
	closeSync(REPORT_FD);
}

async function main(): Promise<void> {
	process.chdir("/");
	// Whoever started us: our own and our children's touches belong to no turn.
	delete process.env.TURNFS_RUN;
	const { values } = parseArgs({ options: { project: { type: "string" }, store: { type: "string" } } });
	if (values.project === undefined || values.store === undefined) {
		throw new TypeError("usage: main.js --project DIR --store DIR");
	}
	const { project, store } = values;
	const { socket } = runtimePaths(project);
	let daemon: ProjectDaemon;
	try {
		daemon = await ProjectDaemon.open(project, store);
	} catch (error) {
		if (error instanceof TurnfsError && error.code === "TURNFS_STORE_LOCKED") {
			return loseTo(socket, project, store, error);
		}
		throw error;
	}
	logLine(`daemon ${process.pid} serves ${project} with ${store}`);
	// Before anything else touches the project.
	await daemon.serial.run(() => finishInterruptedRewinds(daemon));
	await serve(daemon, socket);
}

async function serve(daemon: ProjectDaemon, socket: string): Promise<void> {
	const stopWatching = watchProject(daemon);
	let running = 0;
	let lastNeeded = Date.now();
	let stopping: Promise<void> | null = null;
	const app = await startServer(daemon, {
		socket,
		onCall: (count) => {
			running = count;
			lastNeeded = Date.now();
		},
		onShutdown: () => void stop("it was asked to"),
	});
	const idle = setInterval(
		() => {
			if (running > 0 || daemon.isNeeded) lastNeeded = Date.now();
			else if (Date.now() - lastNeeded >= IDLE_MS) void stop("nothing needs it");
		},
		Math.min(1000, IDLE_MS),
	);
	const stop = (why: string): Promise<void> => {
		stopping ??= (async () => {
			logLine(`daemon ${process.pid} ends: ${why}`);
			daemon.closing = true;
			clearInterval(idle);
			stopWatching();
			// First the socket goes: who comes now starts another daemon, which waits for the store's lock.
			rmSync(socket, { force: true });
			await app.close();
			await daemon.serial.run(() => daemon.close());
			process.exit(0);
		})();
		return stopping;
	};
	process.on("SIGTERM", () => void stop("SIGTERM"));
	process.on("SIGINT", () => void stop("SIGINT"));
	process.on("SIGHUP", () => {});
	daemon.onEngineCrash = () => finishInterruptedRewinds(daemon);
	report({ ready: true });
}

/** Another daemon of this project was first: that is as good as our own start. */
async function loseTo(socket: string, project: string, store: string, locked: TurnfsError): Promise<void> {
	const client = new DaemonClient(socket, { project, store });
	for (const deadline = Date.now() + FIRST_DAEMON_MS; Date.now() < deadline; await sleep(50)) {
		if (await client.answers()) {
			report({ ready: true });
			process.exit(0);
		}
	}
	const pid = lockHolder(join(store, "index", "LOCK"));
	throw new TurnfsError("TURNFS_STORE_LOCKED", { store, by: pid === null ? "" : ` (pid ${pid})` }, locked);
}

/** Who has the lock on a file, by /proc/locks; null when that can't be told. */
function lockHolder(path: string): number | null {
	try {
		const { ino } = statSync(path);
		const line = readFileSync("/proc/locks", "utf8")
			.split("\n")
			.find((text) => text.includes(`:${ino} `));
		const pid = line?.trim().split(/\s+/)[4];
		return pid === undefined ? null : Number(pid);
	} catch {
		// Only for the message; the store may be hidden by a mount.
		return null;
	}
}

try {
	await main();
} catch (error) {
	const known = TurnfsError.from(error, "TURNFS_DAEMON_FAILED", { log: "daemon.log in the store" });
	logLine(`not started: ${known.code}: ${known.message}\n${error instanceof Error ? error.stack : ""}`);
	report({ error: known.toJSON() });
	process.exit(1);
}
