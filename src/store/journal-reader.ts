/**
 * Reads one journal file (native/journal/FORMAT.md): frames checked by CRC-32C and sequence, payloads decoded with every
 * length checked. The first invalid frame ends the file; what was dropped is counted and said.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32c } from "./crc32c.js";
import type { ByteString, Extent, Lane, ObjectId, SpanKind } from "./records.js";

const FRAME_HEADER_BYTES = 20;
const MAX_PAYLOAD_BYTES = 16 << 20;
const FILE_MAGIC = 0x314a4654;
const VERSION = 1;

interface Common {
	epoch: number;
	lane: Lane;
	/** Number of a process record of this session; 0: unknown. */
	proc: number;
	timeNs: bigint;
}

export type JournalRecord = { seq: bigint } & (
	| { type: "header"; version: number; session: string; timeNs: bigint }
	| { type: "span"; epoch: number; kind: Exclude<SpanKind, "gap">; lane: Lane; timeNs: bigint; meta: ByteString }
	| { type: "process"; proc: number; pid: number; start: bigint; lane: Lane; comm: ByteString; command: ByteString[] }
	| {
			type: "bind";
			object: ObjectId;
			born: boolean;
			mode: number;
			dev: bigint;
			ino: bigint;
			birthNs: bigint;
			parent: ObjectId | null;
			name: ByteString;
			handle: ByteString;
	  }
	| ({
			type: "entry";
			dir: ObjectId;
			name: ByteString;
			object: ObjectId | null;
			mode: number;
			parentPath: ByteString;
	  } & Common)
	| ({
			type: "attrs";
			object: ObjectId;
			mode: number;
			uid: number;
			gid: number;
			size: bigint;
			mtimeNs: bigint;
			ctimeNs: bigint;
			rdev: bigint;
			nlink: number;
			xattrs: Record<ByteString, ByteString>;
			target: ByteString;
			path: ByteString;
	  } & Common)
	| ({ type: "data"; object: ObjectId; whole: boolean; size: bigint; extents: Extent[] } & Common)
	| { type: "preserved"; object: ObjectId; place: ByteString; how: "renamed" | "linked" }
	| { type: "moved"; object: ObjectId; dir: ObjectId; name: ByteString }
	| ({
			type: "skipped";
			object: ObjectId | null;
			dir: ObjectId | null;
			name: ByteString;
			what: "entry" | "attrs" | "data" | "preserved";
			errno: number;
			reason: ByteString;
	  } & Common)
	| { type: "unmount"; timeNs: bigint }
	| { type: "dropped"; object: ObjectId; place: ByteString }
	| { type: "seal" }
);

export interface JournalFile {
	records: JournalRecord[];
	/** A Seal ends it: it is complete. */
	sealed: boolean;
	/** Bytes after the last valid record that are not the zeros of a preallocated file. */
	droppedBytes: number;
	/** Why reading stopped there; null when the file ends as it should. */
	reason: string | null;
	/** A frame with a right checksum could not be understood. That is no torn tail: nothing may be cut off here. */
	malformed: boolean;
	/** The version is one that this turnfs can't read. */
	unknownVersion: number | null;
}

/** A payload that is not what its type says. */
class Malformed extends Error {}

class Payload {
	readonly #bytes: Buffer;
	#at: number;
	readonly #end: number;

	constructor(bytes: Buffer, at: number, end: number) {
		this.#bytes = bytes;
		this.#at = at;
		this.#end = end;
	}

	#take(count: number): number {
		const at = this.#at;
		if (at + count > this.#end) throw new Malformed("the payload is too short");
		this.#at = at + count;
		return at;
	}

	u8(): number {
		return this.#bytes.readUInt8(this.#take(1));
	}
	u16(): number {
		return this.#bytes.readUInt16LE(this.#take(2));
	}
	u32(): number {
		return this.#bytes.readUInt32LE(this.#take(4));
	}
	i32(): number {
		return this.#bytes.readInt32LE(this.#take(4));
	}
	u64(): bigint {
		return this.#bytes.readBigUInt64LE(this.#take(8));
	}
	i64(): bigint {
		return this.#bytes.readBigInt64LE(this.#take(8));
	}

	/** u16 count + bytes */
	str(): ByteString {
		return this.#text(this.u16());
	}
	/** u32 count + bytes */
	blob(): ByteString {
		return this.#text(this.u32());
	}
	#text(count: number): ByteString {
		const at = this.#take(count);
		return this.#bytes.toString("latin1", at, at + count);
	}

	/** An id that must not be 0. */
	id(): ObjectId {
		const id = this.u64();
		if (id === 0n) throw new Malformed("an object id is 0");
		return id.toString();
	}
	idOrNone(): ObjectId | null {
		const id = this.u64();
		return id === 0n ? null : id.toString();
	}
	name(): ByteString {
		const name = this.str();
		if (name === "" || name === "." || name === ".." || /[/\0]/.test(name)) {
			throw new Malformed(`${JSON.stringify(name)} is no name`);
		}
		return name;
	}

	finish(): void {
		if (this.#at !== this.#end) throw new Malformed(`${this.#end - this.#at} bytes are left over in the payload`);
	}
}

function oneOf<T>(values: readonly (T | undefined)[], code: number, what: string): T {
	const value = values[code];
	if (value === undefined) throw new Malformed(`${what} ${code} is unknown`);
	return value;
}

const spanKinds = [undefined, "turn", "mark", "between", "rewind", "redo"] as const;
const extentKinds = ["hole", "pack", "blob"] as const;
const preservedHows = [undefined, "renamed", "linked"] as const;
const skippedWhats = [undefined, "entry", "attrs", "data", "preserved"] as const;

function common(p: Payload): Common {
	return { epoch: p.u32(), lane: p.u32(), proc: p.u32(), timeNs: p.i64() };
}

function readExtents(p: Payload): Extent[] {
	return Array.from({ length: checkedCount(p.u32()) }, () => {
		const offset = p.u64();
		const length = p.u64();
		const kind = oneOf(extentKinds, p.u8(), "extent kind");
		const file = p.u64();
		const fileOffset = p.u64();
		const hash = p.u64();
		return {
			offset,
			length,
			kind,
			file,
			fileOffset,
			xxh64: kind === "hole" ? "" : hash.toString(16).padStart(16, "0"),
		};
	});
}

/** A count from a damaged payload must not make an array of 4 billion. */
function checkedCount(count: number): number {
	if (count > MAX_PAYLOAD_BYTES) throw new Malformed("a count is too large");
	return count;
}

function splitCommand(bytes: ByteString): ByteString[] {
	if (bytes.length === 0) return [];
	const words = bytes.split("\0");
	if (words.at(-1) === "") words.pop();
	return words;
}

/** One decoder per record type; see the table in FORMAT.md. */
const decoders: Record<number, (p: Payload, seq: bigint) => JournalRecord> = {
	1: (p, seq) => {
		if (p.u32() !== FILE_MAGIC) throw new Malformed("the magic number is wrong");
		return { seq, type: "header", version: p.u16(), session: p.u64().toString(16), timeNs: p.i64() };
	},
	2: (p, seq) => ({
		seq,
		type: "span",
		epoch: p.u32(),
		kind: oneOf(spanKinds, p.u8(), "span kind"),
		lane: p.u32(),
		timeNs: p.i64(),
		meta: p.blob(),
	}),
	3: (p, seq) => ({
		seq,
		type: "process",
		proc: p.u32(),
		pid: p.u32(),
		start: p.u64(),
		lane: p.u32(),
		comm: p.str(),
		command: splitCommand(p.blob()),
	}),
	4: (p, seq) => ({
		seq,
		type: "bind",
		object: p.id(),
		born: p.u8() === 1,
		mode: p.u32(),
		dev: p.u64(),
		ino: p.u64(),
		birthNs: p.i64(),
		parent: p.idOrNone(),
		name: p.str(),
		handle: p.str(),
	}),
	5: (p, seq) => ({
		seq,
		type: "entry",
		...common(p),
		dir: p.id(),
		name: p.name(),
		object: p.idOrNone(),
		mode: p.u32(),
		parentPath: p.str(),
	}),
	6: (p, seq) => {
		const start = {
			seq,
			type: "attrs" as const,
			...common(p),
			object: p.id(),
			mode: p.u32(),
			uid: p.u32(),
			gid: p.u32(),
		};
		const numbers = { size: p.u64(), mtimeNs: p.i64(), ctimeNs: p.i64(), rdev: p.u64(), nlink: p.u32() };
		const xattrs: Record<ByteString, ByteString> = {};
		for (let left = p.u16(); left > 0; left--) {
			const name = p.str();
			xattrs[name] = p.blob();
		}
		return { ...start, ...numbers, xattrs, target: p.blob(), path: p.str() };
	},
	7: (p, seq) => ({
		seq,
		type: "data",
		...common(p),
		object: p.id(),
		whole: p.u8() === 1,
		size: p.u64(),
		extents: readExtents(p),
	}),
	8: (p, seq) => ({
		seq,
		type: "preserved",
		object: p.id(),
		place: p.str(),
		how: oneOf(preservedHows, p.u8(), "way of preserving"),
	}),
	9: (p, seq) => ({ seq, type: "moved", object: p.id(), dir: p.id(), name: p.name() }),
	10: (p, seq) => ({
		seq,
		type: "skipped",
		...common(p),
		object: p.idOrNone(),
		dir: p.idOrNone(),
		name: p.str(),
		what: oneOf(skippedWhats, p.u8(), "kind of skipped thing"),
		errno: p.i32(),
		reason: p.str(),
	}),
	11: (p, seq) => ({ seq, type: "unmount", timeNs: p.i64() }),
	12: (p, seq) => ({ seq, type: "dropped", object: p.id(), place: p.str() }),
	13: (_p, seq) => ({ seq, type: "seal" }),
};

/** Names of the journal's files, oldest first. @param store the store's folder */
export function listJournal(store: string): string[] {
	return readdirSync(join(store, "journal"))
		.filter((name) => /^[0-9a-f]{16}\.log$/.test(name))
		.sort();
}

/** @param name one of `listJournal` */
export function readJournalFile(store: string, name: string): JournalFile {
	return parseJournal(readFileSync(join(store, "journal", name)), BigInt(`0x${name.slice(0, 16)}`));
}

const zeros = Buffer.alloc(64 << 10);

/** Where the zeros of a preallocated file begin, not before `from`. */
function endOfContent(bytes: Buffer, from: number): number {
	let end = bytes.length;
	while (end - from >= zeros.length && bytes.compare(zeros, 0, zeros.length, end - zeros.length, end) === 0) {
		end -= zeros.length;
	}
	while (end > from && bytes[end - 1] === 0) end--;
	return end;
}

/** @param firstSeq from the file's name */
export function parseJournal(bytes: Buffer, firstSeq: bigint): JournalFile {
	const file: JournalFile = {
		records: [],
		sealed: false,
		droppedBytes: 0,
		reason: null,
		malformed: false,
		unknownVersion: null,
	};
	const stop = (at: number, reason: string): JournalFile => {
		file.droppedBytes = endOfContent(bytes, at) - at;
		if (file.droppedBytes > 0) file.reason = reason;
		return file;
	};
	let at = 0;
	for (let seq = firstSeq; ; seq++) {
		if (at + FRAME_HEADER_BYTES > bytes.length) return stop(at, "the last frame's header is cut off");
		const length = bytes.readUInt32LE(at + 4);
		const type = bytes.readUInt16LE(at + 16);
		if (length === 0 && type === 0) return stop(at, "there are bytes behind the end");
		const end = at + FRAME_HEADER_BYTES + length;
		if (length > MAX_PAYLOAD_BYTES || end > bytes.length) return stop(at, "a frame is cut off");
		if (crc32c(bytes, at + 4, end) !== bytes.readUInt32LE(at)) return stop(at, "a checksum is wrong");
		if (bytes.readBigUInt64LE(at + 8) !== seq) return stop(at, "a record is out of order");
		let record: JournalRecord;
		try {
			const decode = decoders[type];
			if (decode === undefined) throw new Malformed(`record type ${type} is unknown`);
			const payload = new Payload(bytes, at + FRAME_HEADER_BYTES, end);
			record = decode(payload, seq);
			payload.finish();
		} catch (error) {
			if (!(error instanceof Malformed)) throw error;
			file.malformed = true;
			return stop(at, error.message);
		}
		if (file.records.length === 0) {
			if (record.type !== "header") {
				file.malformed = true;
				return stop(at, "the file does not begin with its header");
			}
			if (record.version > VERSION || record.version < 1) {
				file.unknownVersion = record.version;
				return stop(at, `the journal has version ${record.version}`);
			}
		}
		file.records.push(record);
		at = end;
		if (record.type === "seal") {
			file.sealed = true;
			return stop(at, "there are bytes behind the seal");
		}
	}
}
