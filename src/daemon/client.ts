/**
 * Client of a project's daemon, one typed method per route. It starts the daemon when none runs. Errors of the daemon
 * arrive here as the same `TurnfsError` that it threw.
 */
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { describeCause, TurnfsError } from "../errors.js";
import * as api from "./api.js";
import { runtimePaths } from "./runtime-files.js";
import { readText, SocketHttp, type SocketRequest } from "./socket-http.js";
import { startDaemon } from "./start-daemon.js";

export interface ConnectOptions {
	/** The project's real path (never the path of a mount elsewhere). */
	project: string;
	/** The store's folder. */
	store: string;
	/** Make the store when there is none. */
	create?: boolean;
	/** False: null is returned instead of starting a daemon. */
	start?: boolean;
}

/** A hold on the mount and a turn; see `holdRequestSchema`. */
export interface Hold {
	/** Ends the hold in order. */
	close(): Promise<void>;
	/** Resolves when the daemon has gone. */
	readonly broken: Promise<void>;
}

/**
 * Connects to the project's daemon, starting it when needed.
 * @throws TURNFS_STORE_TOO_NEW, TURNFS_STORE_LOCKED, TURNFS_STORE_DAMAGED, TURNFS_STORE_UNUSABLE from its start
 */
export async function connectDaemon(options: ConnectOptions & { start: false }): Promise<DaemonClient | null>;
export async function connectDaemon(options: ConnectOptions): Promise<DaemonClient>;
export async function connectDaemon(options: ConnectOptions): Promise<DaemonClient | null> {
	const { socket } = runtimePaths(options.project);
	const client = new DaemonClient(socket, options);
	if (await client.answers()) return client;
	if (options.start === false) {
		await client.close();
		return null;
	}
	await startDaemon(options);
	return client;
}

export class DaemonClient {
	readonly #socketPath: string;
	readonly #options: ConnectOptions;
	#http: SocketHttp;

	constructor(socketPath: string, options: ConnectOptions) {
		this.#socketPath = socketPath;
		this.#options = options;
		this.#http = this.#open();
	}

	status(): Promise<api.StatusResponse> {
		return this.#call("GET", "/status", undefined, api.statusResponseSchema);
	}

	mount(request: api.MountRequest = {}): Promise<api.MountResponse> {
		return this.#call("POST", "/mount", request, api.mountResponseSchema);
	}

	umount(request: api.UmountRequest = {}): Promise<api.UmountResponse> {
		return this.#call("POST", "/umount", request, api.umountResponseSchema);
	}

	turnBegin(request: api.TurnBeginRequest): Promise<api.TurnBeginResponse> {
		return this.#call("POST", "/turn/begin", request, api.turnBeginResponseSchema);
	}

	turnMark(request: api.TurnMarkRequest = {}): Promise<api.TurnMarkResponse> {
		return this.#call("POST", "/turn/mark", request, api.turnMarkResponseSchema);
	}

	turnEnd(request: api.TurnEndRequest = {}): Promise<api.TurnEndResponse> {
		return this.#call("POST", "/turn/end", request, api.turnEndResponseSchema);
	}

	log(query: api.LogQuery = {}): Promise<api.LogResponse> {
		const words = new URLSearchParams();
		if (query.n !== undefined) words.set("n", String(query.n));
		if (query.all !== undefined) words.set("all", String(query.all));
		return this.#call("GET", `/log?${words}`, undefined, api.logResponseSchema);
	}

	show(turn: api.TurnSpec): Promise<api.ShowResponse> {
		return this.#call("GET", `/show/${turn}`, undefined, api.showResponseSchema);
	}

	rewind(request: api.RewindRequest): Promise<api.RewindResponse> {
		return this.#call("POST", "/rewind", request, api.rewindResponseSchema);
	}

	redo(request: api.RedoRequest = {}): Promise<api.RewindResponse> {
		return this.#call("POST", "/redo", request, api.rewindResponseSchema);
	}

	shutdown(): Promise<api.ShutdownResponse> {
		return this.#call("POST", "/shutdown", {}, api.shutdownResponseSchema);
	}

	/** Opens a hold. It has a connection of its own, which dies with this process. */
	async hold(request: api.HoldRequest): Promise<Hold> {
		const own = this.#open();
		let response: IncomingMessage;
		try {
			response = await own.request({ method: "POST", path: "/hold", json: request });
			if (response.statusCode !== 200) throw await readError(response);
		} catch (error) {
			own.close();
			throw TurnfsError.from(error, "TURNFS_DAEMON_FAILED", { log: "daemon.log in the store" });
		}
		const broken = new Promise<void>((resolve) => {
			response.on("close", resolve);
			response.on("error", () => resolve());
			response.resume();
		});
		return { broken, close: async () => own.close() };
	}

	/** True when a daemon answers at the socket. */
	async answers(): Promise<boolean> {
		try {
			const response = await this.#http.request({ method: "GET", path: "/ping" });
			await readText(response);
			return response.statusCode === 200;
		} catch (error) {
			if (isNobodyThere(error)) return false;
			throw TurnfsError.from(error, "TURNFS_DAEMON_FAILED", { log: "daemon.log in the store" });
		}
	}

	async close(): Promise<void> {
		this.#http.close();
	}

	#open(): SocketHttp {
		return new SocketHttp(this.#socketPath);
	}

	async #call<S extends z.ZodType>(
		method: "GET" | "POST",
		path: string,
		body: unknown,
		schema: S,
	): Promise<z.output<S>> {
		const request: SocketRequest = { method, path, json: body };
		let response: IncomingMessage;
		try {
			response = await this.#http.request(request);
		} catch (error) {
			// It had been idle long enough to leave between our question whether it is there and this call.
			if (!isNobodyThere(error)) throw this.#failure(error);
			await startDaemon(this.#options);
			this.#http = this.#open();
			response = await this.#http.request(request).catch((again) => {
				throw this.#failure(again);
			});
		}
		if (response.statusCode !== 200) throw await readError(response);
		const parsed = schema.safeParse(JSON.parse(await readText(response)));
		if (!parsed.success) throw this.#failure(new Error(`its answer to ${path} has an unknown form`));
		return parsed.data;
	}

	#failure(error: unknown): TurnfsError {
		return TurnfsError.from(error, "TURNFS_DAEMON_FAILED", { log: `${this.#options.store}/daemon.log` });
	}
}

function isNobodyThere(error: unknown): boolean {
	const code = (error as NodeJS.ErrnoException | null)?.code;
	return code === "ENOENT" || code === "ECONNREFUSED";
}

async function readError(response: IncomingMessage): Promise<TurnfsError> {
	const text = await readText(response);
	let json: unknown;
	try {
		json = JSON.parse(text);
	} catch (error) {
		return new TurnfsError("TURNFS_DAEMON_FAILED", { reason: describeCause(error), log: "its log" }, error);
	}
	const parsed = api.errorResponseSchema.safeParse(json);
	if (parsed.success) return TurnfsError.fromJson(parsed.data.error);
	return new TurnfsError("TURNFS_DAEMON_FAILED", { reason: `it answered ${response.statusCode}`, log: "its log" });
}
