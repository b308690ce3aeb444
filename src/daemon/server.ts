/** The daemon's HTTP server: routes over a Unix socket that only its user may connect to. */
import { chmodSync, rmSync } from "node:fs";
import Fastify, { type FastifyInstance } from "fastify";
import { ZodError } from "zod";
import { ChannelError, EngineError } from "../engine/line-protocol.js";
import { TurnfsError } from "../errors.js";
import { logLine } from "./log-line.js";
import type { ProjectDaemon } from "./project-daemon.js";
import { registerHistory } from "./routes/history.js";
import { registerHold } from "./routes/hold.js";
import { registerMount } from "./routes/mount.js";
import { registerRewind } from "./routes/rewind.js";
import { registerStatus } from "./routes/status.js";
import { registerTurn } from "./routes/turn.js";

export interface ServerOptions {
	socket: string;
	/** Told at every call's begin and end. */
	onCall: (running: number) => void;
	/** `POST /shutdown` was answered. */
	onShutdown: () => void;
}

export async function startServer(daemon: ProjectDaemon, options: ServerOptions): Promise<FastifyInstance> {
	const app = Fastify({ forceCloseConnections: true });
	let running = 0;
	app.addHook("onRequest", async (_request, reply) => {
		options.onCall(++running);
		// Also comes when the caller has gone before its answer.
		reply.raw.once("close", () => options.onCall(--running));
	});
	app.setErrorHandler((error, request, reply) => {
		const known = explain(error, daemon);
		if (known.code === "TURNFS_DAEMON_FAILED") {
			logLine(`${request.method} ${request.url}: ${error instanceof Error ? error.stack : String(error)}`);
		} else {
			logLine(`${request.method} ${request.url}: ${known.code}: ${known.message}`);
		}
		return reply.status(known.code === "TURNFS_USAGE" ? 400 : 409).send({ error: known.toJSON() });
	});
	app.get("/ping", async () => ({ pid: process.pid }));
	app.post("/shutdown", async (_request, reply) => {
		reply.raw.once("finish", options.onShutdown);
		return { pid: process.pid };
	});
	registerStatus(app, daemon);
	registerMount(app, daemon);
	registerTurn(app, daemon);
	registerHold(app, daemon);
	registerHistory(app, daemon);
	registerRewind(app, daemon);
	// We have the store's lock, so a socket that is there is a dead daemon's.
	rmSync(options.socket, { force: true });
	await app.listen({ path: options.socket });
	chmodSync(options.socket, 0o600);
	return app;
}

function explain(error: unknown, daemon: ProjectDaemon): TurnfsError {
	if (error instanceof TurnfsError) return error;
	const { project, store } = daemon.folders;
	if (error instanceof ZodError) {
		const issue = error.issues[0];
		return new TurnfsError("TURNFS_USAGE", { what: `${issue?.path.join(".")}: ${issue?.message}.` }, error);
	}
	if (error instanceof ChannelError) {
		return new TurnfsError("TURNFS_ENGINE_GONE", { project, log: `${store}/engine.log` }, error);
	}
	if (error instanceof EngineError) {
		return new TurnfsError("TURNFS_ENGINE_REFUSED", { verb: error.where, reason: error.code }, error);
	}
	return TurnfsError.from(error, "TURNFS_DAEMON_FAILED", { log: `${store}/daemon.log` });
}
