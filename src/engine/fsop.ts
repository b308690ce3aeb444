/**
 * System calls that Node has none for, made by a child `turnfs-engine fsop`: nanosecond times, xattrs, holes, RENAME_NOREPLACE,
 * paths that can't leave their root. Names and paths are byte strings, relative to a root that `root` opened.
 *
 * Calls are pipelined: they are executed in the order they were made, whether or not they were awaited.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { ByteString } from "../store/records.js";
import { type Answer, ChannelError, EngineError, LineClient, type RequestFields } from "./line-protocol.js";

/** A path below a root. "" is the root itself. */
export interface Place {
	root: string;
	path: ByteString;
}

export interface FileStat {
	/** st_mode: kind and permissions. */
	mode: number;
	uid: number;
	gid: number;
	size: bigint;
	mtimeNs: bigint;
	ctimeNs: bigint;
	/** 0 where the filesystem has none. */
	birthNs: bigint;
	ino: bigint;
	/** 0: the device of the root. */
	dev: bigint;
	nlink: number;
	rdev: bigint;
	/** Symlinks only, and only when asked with xattrs. */
	target: ByteString | null;
	/** Empty unless asked for. */
	xattrs: Record<ByteString, ByteString>;
}

export interface AttrChange {
	/** Permission bits. */
	mode?: number;
	uid?: number;
	gid?: number;
	mtimeNs?: bigint;
	setXattrs?: Record<ByteString, ByteString>;
	removeXattrs?: ByteString[];
}

export interface DataExtent {
	offset: bigint;
	length: bigint;
}

export const S_IFMT = 0o170000;
export const S_IFSOCK = 0o140000;
export const S_IFLNK = 0o120000;
export const S_IFREG = 0o100000;
export const S_IFBLK = 0o060000;
export const S_IFDIR = 0o040000;
export const S_IFCHR = 0o020000;
export const S_IFIFO = 0o010000;

/** The most that one `read` may ask for. */
export const MAX_READ_BYTES = 1 << 20;

/** The child ended while calls were under way: whether they were executed is not known. The next call starts another. */
export class FsopGoneError extends Error {
	constructor(cause: unknown) {
		super("the process that makes turnfs's system calls has ended", { cause });
		this.name = "FsopGoneError";
	}
}

interface Running {
	child: ChildProcess;
	client: LineClient;
	exited: Promise<void>;
}

export class Fsop {
	private readonly enginePath: string;
	private readonly stderr: number | "inherit" | "ignore";
	/** Roots that are open, to be opened again in another child. */
	private readonly roots = new Map<string, string>();
	private running: Running;
	private closed = false;

	private constructor(enginePath: string, stderr: number | "inherit" | "ignore") {
		this.enginePath = enginePath;
		this.stderr = stderr;
		this.running = this.start();
	}

	/**
	 * Starts the child. When it dies, the calls under way fail and the next call starts another, with the same roots.
	 * @param enginePath the engine's executable
	 * @param stderr where its complaints go: a descriptor, or "inherit" / "ignore"
	 * @throws Error when it can't be started
	 */
	static async spawn(enginePath: string, stderr: number | "inherit" | "ignore" = "ignore"): Promise<Fsop> {
		const fsop = new Fsop(enginePath, stderr);
		await new Promise<void>((resolve, reject) => {
			fsop.running.child.once("spawn", resolve);
			fsop.running.child.once("error", reject);
		});
		return fsop;
	}

	/** The child's process id: the owner of a rewind's span. */
	get pid(): number {
		if (this.running.client.failed !== null && !this.closed) {
			this.restart();
		}
		return this.running.child.pid ?? 0;
	}

	/** Ends the child after what was sent has been answered. */
	async close(): Promise<void> {
		this.closed = true;
		this.running.client.end();
		await this.running.exited;
	}

	/** Any verb of the protocol. @throws EngineError what the call answered; FsopGoneError */
	async request(verb: string, fields: RequestFields): Promise<Answer> {
		if (this.running.client.failed !== null && !this.closed) {
			this.restart();
		}
		try {
			return await this.running.client.request(verb, fields);
		} catch (error) {
			throw error instanceof ChannelError ? new FsopGoneError(error) : error;
		}
	}

	private start(): Running {
		const child = spawn(this.enginePath, ["fsop"], { stdio: ["pipe", "pipe", this.stderr], cwd: "/" });
		// Both were asked for as pipes.
		if (child.stdout === null || child.stdin === null) {
			throw new Error("fsop has no pipes");
		}
		const exited = new Promise<void>((resolve) => {
			child.once("exit", () => resolve());
			child.once("error", () => resolve());
		});
		return { child, client: new LineClient(child.stdout, child.stdin), exited };
	}

	private restart(): void {
		this.running = this.start();
		for (const [id, path] of this.roots) {
			// One that can't be opened any more (a mount that has gone) fails again, and with its reason, when it is used.
			this.running.client.request("root", { id, path }).catch(() => {});
		}
	}

	async root(id: string, path: string): Promise<void> {
		await this.request("root", { id, path });
		this.roots.set(id, path);
	}

	async closeRoot(id: string): Promise<void> {
		this.roots.delete(id);
		await this.request("close", { id });
	}

	/** @throws EngineError, ENOENT when nothing is there */
	async stat(place: Place, options: { xattrs?: boolean } = {}): Promise<FileStat> {
		return parseStat(await this.request("stat", { ...at(place), xattrs: options.xattrs === true ? 1 : undefined }));
	}

	/** null when nothing is there: ENOENT, or a parent that isn't a folder (any more). */
	async statIfPresent(place: Place, options: { xattrs?: boolean } = {}): Promise<FileStat | null> {
		try {
			return await this.stat(place, options);
		} catch (error) {
			if (isAbsent(error)) {
				return null;
			}
			throw error;
		}
	}

	async list(place: Place): Promise<ByteString[]> {
		return (await this.request("list", at(place))).all("n");
	}

	/** The ranges that aren't holes. */
	async extents(place: Place): Promise<DataExtent[]> {
		return (await this.request("extents", at(place))).all("data").map((text) => {
			const [offset, length] = text.split(",");
			return { offset: BigInt(offset ?? ""), length: BigInt(length ?? "") };
		});
	}

	/** Up to MAX_READ_BYTES bytes; fewer at the end of the file. */
	async read(place: Place, offset: bigint, length: number): Promise<Buffer> {
		const answer = await this.request("read", { ...at(place), offset, length });
		return Buffer.from(answer.text("bytes"), "latin1");
	}

	async hash(place: Place, offset: bigint, length: bigint): Promise<{ xxh64: string; read: bigint }> {
		const answer = await this.request("hash", { ...at(place), offset, length });
		return { xxh64: answer.text("xxh64"), read: answer.integer("read") };
	}

	async equal(a: Place, aOffset: bigint, b: Place, bOffset: bigint, length: bigint): Promise<boolean> {
		const fields = { ...at(a), offset: aOffset, ...to(b), to_offset: bOffset, length };
		return (await this.request("equal", fields)).flag("equal");
	}

	async mkdir(place: Place, mode: number): Promise<void> {
		await this.request("mkdir", { ...at(place), mode });
	}

	async mknod(place: Place, mode: number, rdev: bigint): Promise<void> {
		await this.request("mknod", { ...at(place), mode, rdev });
	}

	/** A new empty file. @throws EngineError EEXIST */
	async create(place: Place, mode: number): Promise<void> {
		await this.request("create", { ...at(place), mode });
	}

	async symlink(place: Place, target: ByteString): Promise<void> {
		await this.request("symlink", { ...at(place), target });
	}

	/** Gives what is at `from` the further name `place`. */
	async link(from: Place, place: Place): Promise<void> {
		await this.request("link", { ...at(from), ...to(place) });
	}

	/** Never replaces. @throws EngineError EEXIST */
	async rename(from: Place, place: Place): Promise<void> {
		await this.request("rename", { ...at(from), ...to(place) });
	}

	async unlink(place: Place): Promise<void> {
		await this.request("unlink", { ...at(place) });
	}

	async rmdir(place: Place): Promise<void> {
		await this.request("rmdir", { ...at(place) });
	}

	/** Copies bytes into an existing file. */
	async copy(place: Place, offset: bigint, length: bigint, from: Place, fromOffset: bigint): Promise<void> {
		await this.request("copy", {
			...at(place),
			offset,
			length,
			from_root: from.root,
			from: from.path,
			from_offset: fromOffset,
		});
	}

	async punch(place: Place, offset: bigint, length: bigint): Promise<void> {
		await this.request("punch", { ...at(place), offset, length });
	}

	async truncate(place: Place, size: bigint): Promise<void> {
		await this.request("truncate", { ...at(place), size });
	}

	async attrs(place: Place, change: AttrChange): Promise<void> {
		const xattrs = Object.entries(change.setXattrs ?? {}).map(([name, value]) => [`x.${hex(name)}`, value]);
		await this.request("attrs", {
			...at(place),
			mode: change.mode,
			uid: change.uid,
			gid: change.gid,
			mtime: change.mtimeNs,
			...Object.fromEntries(xattrs),
			rx: change.removeXattrs,
		});
	}

	async fsync(place: Place): Promise<void> {
		await this.request("fsync", at(place));
	}

	async syncfs(root: string): Promise<void> {
		await this.request("syncfs", { root });
	}

	/** Dirty pages of live shared mappings have reached the engine when this returns. */
	async flush(mountpoint: ByteString, marker: ByteString): Promise<void> {
		await this.request("flush", { mount: mountpoint, marker });
	}

	/** Where the object with that file handle is. @throws EngineError ESTALE when it has gone, or what the filesystem refuses */
	async openHandle(root: string, handle: ByteString): Promise<ByteString> {
		return (await this.request("open-handle", { root, handle })).text("path");
	}

	/** Processes whose working directory is on a device. */
	async procs(where: { dev: bigint } | { path: ByteString }): Promise<{ pid: number; comm: ByteString }[]> {
		return (await this.request("procs", where)).all("p").map((text) => {
			const comma = text.indexOf(",");
			return { pid: Number(text.slice(0, comma)), comm: text.slice(comma + 1) };
		});
	}
}

/** True for errors that mean: there is nothing at that path. */
export function isAbsent(error: unknown): boolean {
	return error instanceof EngineError && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

function at(place: Place): { root: string; path: ByteString } {
	return { root: place.root, path: place.path };
}

function to(place: Place): { to_root: string; to: ByteString } {
	return { to_root: place.root, to: place.path };
}

function hex(bytes: ByteString): string {
	return Buffer.from(bytes, "latin1").toString("hex");
}

function parseStat(answer: Answer): FileStat {
	const xattrs: Record<ByteString, ByteString> = {};
	for (const [name, value] of answer.withPrefix("x.")) {
		xattrs[Buffer.from(name, "hex").toString("latin1")] = value;
	}
	return {
		mode: answer.number("mode"),
		uid: answer.number("uid"),
		gid: answer.number("gid"),
		size: answer.integer("size"),
		mtimeNs: answer.integer("mtime"),
		ctimeNs: answer.integer("ctime"),
		birthNs: answer.integer("birth"),
		ino: answer.integer("ino"),
		dev: answer.integer("dev"),
		nlink: answer.number("nlink"),
		rdev: answer.integer("rdev"),
		target: answer.optional("target") ?? null,
		xattrs,
	};
}
