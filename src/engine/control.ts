/**
 * Client of the engine's control socket (native/control/PROTOCOL.md). One connection for the life of a mount; its end is how
 * the daemon learns that the engine has gone.
 */
import { createConnection, type Socket } from "node:net";
import type { ByteString, Lane } from "../store/records.js";
import { type Answer, LineClient } from "./line-protocol.js";

export interface EngineHello {
	version: string;
	/** Random per mount; hex. */
	session: ByteString;
	pid: number;
	keeper: number;
	epoch: number;
	seq: bigint;
	nextObject: bigint;
	nextPack: bigint;
	mountpoint: ByteString;
}

/** A span's beginning, as the journal has it. */
export interface Position {
	epoch: number;
	seq: bigint;
	timeNs: bigint;
}

export interface SpanRequest {
	kind: "turn" | "mark" | "between" | "rewind" | "redo";
	lane: Lane;
	/** Descendants of this process touch in the lane. */
	ownerPid?: number | undefined;
	/** So do processes with TURNFS_RUN=<token>. With neither, everything is of the lane. */
	token?: string | undefined;
	/** Any JSON; kept with the span. */
	meta: unknown;
}

export interface EngineStatus {
	requests: bigint;
	inodes: bigint;
	fds: bigint;
	touches: bigint;
	captured: bigint;
	preserved: bigint;
	skipped: bigint;
	failures: bigint;
	io: string;
	/** Number below /sys/fs/fuse/connections. */
	connection: string;
}

export class ControlClient {
	readonly #socket: Socket;
	readonly #line: LineClient;
	/** Resolves when the engine has closed the connection: it has ended, or is about to. */
	readonly closed: Promise<void>;

	private constructor(socket: Socket) {
		this.#socket = socket;
		this.#line = new LineClient(socket, socket);
		this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
	}

	/** @throws Error (ENOENT, ECONNREFUSED) when no engine listens */
	static async connect(path: string): Promise<ControlClient> {
		const socket = createConnection(path);
		await new Promise<void>((resolve, reject) => {
			socket.once("connect", resolve);
			socket.once("error", reject);
		});
		return new ControlClient(socket);
	}

	/** Only lets go of the connection: the engine goes on. */
	close(): void {
		this.#socket.destroy();
	}

	async hello(): Promise<EngineHello> {
		const said = await this.#line.request("hello");
		return {
			version: said.text("version"),
			session: said.text("session"),
			pid: said.number("pid"),
			keeper: said.number("keeper"),
			epoch: said.number("epoch"),
			seq: said.integer("seq"),
			nextObject: said.integer("object"),
			nextPack: said.integer("pack"),
			mountpoint: said.text("mountpoint"),
		};
	}

	async flushBegin(): Promise<void> {
		await this.#line.request("flush-begin");
	}

	/** True: a size change overlapped the flush, so flush again. */
	async flushEnd(): Promise<boolean> {
		return (await this.#line.request("flush-end")).flag("again");
	}

	async advance(span: SpanRequest): Promise<Position> {
		return position(
			await this.#line.request("advance", {
				kind: span.kind,
				lane: span.lane,
				owner: span.ownerPid,
				token: span.token === undefined ? undefined : Buffer.from(span.token, "utf8").toString("latin1"),
				meta: Buffer.from(JSON.stringify(span.meta), "utf8").toString("latin1"),
			}),
		);
	}

	/** Everything up to the returned position is in sealed journal files. */
	async seal(): Promise<bigint> {
		return (await this.#line.request("seal")).integer("seq");
	}

	async sync(): Promise<void> {
		await this.#line.request("sync");
	}

	/** The name in the mount's root that is the store, until `closeDoor`. */
	async openDoor(): Promise<ByteString> {
		return (await this.#line.request("door", { open: true })).text("name");
	}

	async closeDoor(): Promise<void> {
		await this.#line.request("door", { open: false });
	}

	async setShortTimeouts(short: boolean): Promise<void> {
		await this.#line.request("timeouts", { short });
	}

	async setTrace(on: boolean): Promise<void> {
		await this.#line.request("trace", { on });
	}

	async status(): Promise<EngineStatus> {
		const said = await this.#line.request("status");
		return {
			requests: said.integer("requests"),
			inodes: said.integer("inodes"),
			fds: said.integer("fds"),
			touches: said.integer("touches"),
			captured: said.integer("captured"),
			preserved: said.integer("preserved"),
			skipped: said.integer("skipped"),
			failures: said.integer("failures"),
			io: said.text("io"),
			connection: said.optional("connection") ?? "",
		};
	}
}

function position(answer: Answer): Position {
	return { epoch: answer.number("epoch"), seq: answer.integer("seq"), timeNs: answer.integer("time") };
}
