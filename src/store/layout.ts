/**
 * The store's folder: what lies in it, how it is made, which layouts can be read. Everything here is reached below one
 * folder path, which the daemon gives as `/proc/self/fd/<n>` so that a mount on top doesn't matter.
 */
import { spawnSync } from "node:child_process";
import {
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { enginePath } from "../engine/engine-path.js";
import { EngineError, encodeRequest, parseAnswer } from "../engine/line-protocol.js";
import { TurnfsError } from "../errors.js";
import { toByteString } from "../text/byte-string.js";

/** The layout this turnfs writes; it reads every version up to it. */
export const LAYOUT_VERSION = 1;

/** The size of `marker`: one page, which a barrier dirties and flushes. */
const MARKER_BYTES = 4096;

const folders = ["preserved", "nameless", "staging", "journal", "packs", "blobs"] as const;

/** Folder of files that a turn deleted or replaced, kept alive. */
export const PRESERVED = "preserved";
/** Folder in which a rewind puts what must be out of the way for a moment. */
export const STAGING = "staging";
/** Folder of the index (LevelDB). */
export const INDEX = "index";
/** The page for the barrier's flush. */
export const MARKER = "marker";
/** u64 nanoseconds: when the engine last let a change pass. */
export const HEARTBEAT = "heartbeat";

/** Path of a pack below the store. */
export function packPath(number: bigint): string {
	return `packs/${number.toString(16).padStart(8, "0")}.pack`;
}

/** Path of a blob below the store. */
export function blobPath(number: bigint): string {
	return `blobs/${number.toString(16).padStart(16, "0")}`;
}

/**
 * Makes the store, or what is missing of it, and checks its version. The folder that holds it keeps its mtime, because that
 * folder may be the project.
 * @param store its path; @param project recorded for people who find the store
 * @throws TURNFS_STORE_UNUSABLE, TURNFS_STORE_TOO_NEW, TURNFS_STORE_DAMAGED
 */
export function ensureStore(store: string, project: string): void {
	if (existsSync(join(store, "format"))) {
		checkLayout(store, store);
		return;
	}
	try {
		if (existsSync(store) && readdirSync(store).length > 0 && !isUnfinished(store)) {
			throw new TurnfsError("TURNFS_STORE_UNUSABLE", {
				store,
				reason: "the folder is not empty and holds no turnfs store",
			});
		}
		createStore(store, project);
	} catch (error) {
		throw TurnfsError.from(error, "TURNFS_STORE_UNUSABLE", { store });
	}
}

/** A creation that was cut off: nothing in it but what creation makes, and no `format` yet (that comes last). */
function isUnfinished(store: string): boolean {
	const own = new Set<string>([
		...folders,
		INDEX,
		MARKER,
		HEARTBEAT,
		"CACHEDIR.TAG",
		".gitignore",
		".ignore",
		"format.new",
	]);
	return readdirSync(store).every((name) => own.has(name));
}

function createStore(store: string, project: string): void {
	const parent = dirname(store);
	mkdirSync(parent, { recursive: true, mode: 0o700 });
	const before = lstatSync(parent, { bigint: true });
	mkdirSync(store, { recursive: true, mode: 0o700 });
	if (lstatSync(parent, { bigint: true }).mtimeNs !== before.mtimeNs) setMtime(parent, before.mtimeNs);
	for (const name of folders) mkdirSync(join(store, name), { recursive: true, mode: 0o700 });
	mkdirSync(join(store, INDEX), { recursive: true, mode: 0o700 });
	const write = (name: string, bytes: string | Buffer) => writeFileSync(join(store, name), bytes, { mode: 0o600 });
	write(MARKER, Buffer.alloc(MARKER_BYTES));
	write(HEARTBEAT, Buffer.alloc(8));
	write(
		"CACHEDIR.TAG",
		"Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a turnfs store: backups of the project may leave it out.\n",
	);
	// Tools that walk the project while it is not mounted leave the store alone.
	for (const name of [".gitignore", ".ignore"]) write(name, "*\n");
	write("format.new", `turnfs-store ${LAYOUT_VERSION}\n${JSON.stringify({ project })}\n`);
	renameSync(join(store, "format.new"), join(store, "format"));
}

/** Node sets times as seconds in a double, which drops nanoseconds; the engine sets them exactly. */
function setMtime(folder: string, mtimeNs: bigint): void {
	const requests =
		encodeRequest(1, "root", { id: "r", path: toByteString(folder) }) +
		encodeRequest(2, "attrs", { root: "r", path: "", mtime: mtimeNs });
	const done = spawnSync(enginePath(), ["fsop"], { input: requests, encoding: "latin1", cwd: "/" });
	if (done.error) throw done.error;
	for (const line of done.stdout.split("\n").filter((text) => text !== "")) {
		const { result } = parseAnswer(line);
		if (result instanceof EngineError) throw result;
	}
}

/**
 * @param store where it can be reached; @param shown the path for messages
 * @throws TURNFS_STORE_TOO_NEW, TURNFS_STORE_DAMAGED, TURNFS_STORE_UNUSABLE
 */
export function checkLayout(store: string, shown: string): void {
	let text: string;
	try {
		text = readFileSync(join(store, "format"), "utf8");
	} catch (error) {
		throw TurnfsError.from(error, "TURNFS_STORE_UNUSABLE", { store: shown });
	}
	const version = /^turnfs-store (\d{1,9})\n/.exec(text)?.[1];
	if (version === undefined) {
		throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: join(shown, "format"), reason: "it names no layout" });
	}
	if (Number(version) > LAYOUT_VERSION) {
		throw new TurnfsError("TURNFS_STORE_TOO_NEW", { store: shown, found: version, known: LAYOUT_VERSION });
	}
	if (Number(version) < 1) {
		throw new TurnfsError("TURNFS_STORE_DAMAGED", {
			file: join(shown, "format"),
			reason: `layout ${version} never was`,
		});
	}
	for (const name of folders) {
		if (!existsSync(join(store, name))) {
			throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: join(shown, name), reason: "the folder is missing" });
		}
	}
	if (statSync(join(store, MARKER), { throwIfNoEntry: false })?.size !== MARKER_BYTES) {
		// Nothing of value is in it.
		writeFileSync(join(store, MARKER), Buffer.alloc(MARKER_BYTES), { mode: 0o600 });
	}
}

/** The number for the next pack: one more than the highest there is. */
export function nextPackNumber(store: string): number {
	let highest = 0;
	for (const name of readdirSync(join(store, "packs"))) {
		const digits = /^([0-9a-f]{8})\.pack$/.exec(name)?.[1];
		if (digits !== undefined) highest = Math.max(highest, Number.parseInt(digits, 16));
	}
	return highest + 1;
}

/** When the engine last let a change pass, by the heartbeat file and the journal's newest file; 0 when never. */
export function lastEngineActivityNs(store: string): bigint {
	let latest = 0n;
	const heartbeat = join(store, HEARTBEAT);
	if (existsSync(heartbeat)) {
		const bytes = readFileSync(heartbeat);
		if (bytes.length >= 8) latest = bytes.readBigUInt64LE(0);
	}
	for (const name of readdirSync(join(store, "journal"))) {
		const stat = lstatSync(join(store, "journal", name), { bigint: true, throwIfNoEntry: false });
		if (stat !== undefined && stat.mtimeNs > latest) latest = stat.mtimeNs;
	}
	return latest;
}

/** Bytes the store takes on disk. Walks it, so only `status` asks. */
export function measureStore(store: string): number {
	let bytes = 0;
	const seen = new Set<string>();
	const visit = (dir: string) => {
		for (const item of readdirSync(dir, { withFileTypes: true })) {
			const path = join(dir, item.name);
			const stat = lstatSync(path, { throwIfNoEntry: false });
			if (stat === undefined) continue;
			if (item.isDirectory()) visit(path);
			const key = `${stat.dev}:${stat.ino}`;
			// A preserved file that is still linked in the project costs nothing here; one with two links here costs once.
			if (stat.nlink > 1 && !item.isDirectory() && seen.has(key)) continue;
			seen.add(key);
			bytes += stat.blocks * 512;
		}
	};
	visit(store);
	return bytes;
}
