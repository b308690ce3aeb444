/** Writes journal files as FORMAT.md describes them, for tests of the reader and of ingest. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32c } from "../../src/store/crc32c.js";

class Bytes {
	readonly parts: Buffer[] = [];
	#add(size: number, write: (buffer: Buffer) => void): this {
		const buffer = Buffer.alloc(size);
		write(buffer);
		this.parts.push(buffer);
		return this;
	}
	u8 = (n: number) => this.#add(1, (b) => b.writeUInt8(n));
	u16 = (n: number) => this.#add(2, (b) => b.writeUInt16LE(n));
	u32 = (n: number) => this.#add(4, (b) => b.writeUInt32LE(n));
	i32 = (n: number) => this.#add(4, (b) => b.writeInt32LE(n));
	u64 = (n: number | bigint) => this.#add(8, (b) => b.writeBigUInt64LE(BigInt(n)));
	i64 = (n: number | bigint) => this.#add(8, (b) => b.writeBigInt64LE(BigInt(n)));
	str = (text: string) => this.u16(text.length).raw(Buffer.from(text, "latin1"));
	blob = (text: string | Buffer) => this.u32(text.length).raw(Buffer.from(text as string, "latin1"));
	raw(buffer: Buffer): this {
		this.parts.push(buffer);
		return this;
	}
}

export interface TestExtent {
	offset: number;
	length: number;
	kind: 0 | 1 | 2;
	file: number;
	fileOffset: number;
	xxh64: bigint;
}

/** One journal file in the making. Sequence numbers are given in order. */
export class JournalBuilder {
	seq: bigint;
	readonly first: bigint;
	readonly frames: Buffer[] = [];
	epoch = 1;
	lane = 0;

	constructor(firstSeq: number | bigint, session: bigint = 7n) {
		this.seq = BigInt(firstSeq);
		this.first = this.seq;
		this.record(1, new Bytes().u32(0x314a4654).u16(1).u64(session).i64(1_000));
	}

	record(type: number, payload: Bytes): this {
		const body = Buffer.concat(payload.parts);
		const frame = Buffer.alloc(20 + body.length);
		frame.writeUInt32LE(body.length, 4);
		frame.writeBigUInt64LE(this.seq++, 8);
		frame.writeUInt16LE(type, 16);
		body.copy(frame, 20);
		frame.writeUInt32LE(crc32c(frame, 4), 0);
		this.frames.push(frame);
		return this;
	}

	#touch = (proc = 0) => new Bytes().u32(this.epoch).u32(this.lane).u32(proc).i64(5_000);

	span(epoch: number, kind: number, lane: number, timeNs: number, meta: object = {}): this {
		this.epoch = epoch;
		this.lane = lane;
		return this.record(2, new Bytes().u32(epoch).u8(kind).u32(lane).i64(timeNs).blob(JSON.stringify(meta)));
	}
	process(proc: number, pid: number, command: string[]): this {
		const words = command.map((word) => `${word}\0`).join("");
		return this.record(3, new Bytes().u32(proc).u32(pid).u64(99).u32(this.lane).str("cmd").blob(words));
	}
	bind(object: number, born: boolean, ino: number, parent: number, name: string, mode = 0o100644, birth = 1): this {
		const p = new Bytes()
			.u64(object)
			.u8(born ? 1 : 0)
			.u32(mode)
			.u64(0)
			.u64(ino)
			.i64(birth)
			.u64(parent)
			.str(name);
		return this.record(4, p.str(""));
	}
	entry(dir: number, name: string, object: number, parentPath = "", proc = 0): this {
		const mode = object === 0 ? 0 : 0o100644;
		return this.record(5, this.#touch(proc).u64(dir).str(name).u64(object).u32(mode).str(parentPath));
	}
	attrs(object: number, size: number, path: string, mode = 0o100644): this {
		const p = this.#touch().u64(object).u32(mode).u32(0).u32(0).u64(size).i64(10).i64(11).u64(0).u32(1);
		return this.record(6, p.u16(1).str("user.x").blob("value").blob("").str(path));
	}
	data(object: number, size: number, extents: TestExtent[]): this {
		const p = this.#touch().u64(object).u8(1).u64(size).u32(extents.length);
		for (const e of extents) p.u64(e.offset).u64(e.length).u8(e.kind).u64(e.file).u64(e.fileOffset).u64(e.xxh64);
		return this.record(7, p);
	}
	preserved(object: number, place: string): this {
		return this.record(8, new Bytes().u64(object).str(place).u8(1));
	}
	moved(object: number, dir: number, name: string): this {
		return this.record(9, new Bytes().u64(object).u64(dir).str(name));
	}
	dropped(object: number, place: string): this {
		return this.record(12, new Bytes().u64(object).str(place));
	}
	unmount(timeNs: number): this {
		return this.record(11, new Bytes().i64(timeNs));
	}
	seal(): this {
		return this.record(13, new Bytes());
	}

	get bytes(): Buffer {
		return Buffer.concat(this.frames);
	}
	get fileName(): string {
		return `${this.first.toString(16).padStart(16, "0")}.log`;
	}
	/** @param zeros of a preallocated file */
	writeTo(store: string, zeros = 0, cut = 0): void {
		const bytes = this.bytes;
		const kept = bytes.subarray(0, bytes.length - cut);
		writeFileSync(join(store, "journal", this.fileName), Buffer.concat([kept, Buffer.alloc(zeros)]));
	}
}

/** An empty store's folders, for tests without a project. */
export function makeStoreFolders(): string {
	const store = mkdtempSync(join(tmpdir(), "turnfs-store-"));
	for (const name of ["journal", "packs", "blobs", "preserved", "index"]) mkdirSync(join(store, name));
	return store;
}
