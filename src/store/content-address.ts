/**
 * Content addressing: xxh64 and length name a content, and the first copy of it is the one that records point to. xxh64 is no
 * proof, so two contents count as equal only after their bytes were compared; a true collision gets a suffix.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { type BlobLocation, blobSchema } from "./codec.js";
import { type IndexDb, type Operation, put } from "./index-db.js";
import { blobKey } from "./keys.js";
import { blobPath, packPath } from "./layout.js";
import type { Extent } from "./records.js";

const WINDOW_BYTES = 1 << 20;
/** Larger contents are reflinks or rare; comparing them would hold up everything else for too long. */
const MAX_COMPARED_BYTES = 16n << 20n;

export class ContentAddresser {
	readonly #db: IndexDb;
	readonly #store: string;
	readonly #files = new Map<string, number | null>();
	/** Addresses met since the last batch was written. */
	readonly #pending = new Map<string, BlobLocation | null>();

	constructor(db: IndexDb, store: string) {
		this.#db = db;
		this.#store = store;
	}

	/** Reads the addresses of many extents at once. */
	async prefetch(extents: Extent[]): Promise<void> {
		const wanted = new Set<string>();
		for (const extent of extents) {
			if (isAddressed(extent)) wanted.add(blobKey(extent.xxh64, extent.length, 0));
		}
		const missing = [...wanted].filter((key) => !this.#pending.has(key));
		const found = await this.#db.getMany(missing, blobSchema);
		missing.forEach((key, i) => {
			this.#pending.set(key, found[i] ?? null);
		});
	}

	/** The extent, pointing to the first copy of its bytes; `operations` gets the address when it is new. */
	async address(extent: Extent, operations: Operation[]): Promise<Extent> {
		if (!isAddressed(extent)) return extent;
		for (let collision = 0; ; collision++) {
			const key = blobKey(extent.xxh64, extent.length, collision);
			let first = this.#pending.get(key);
			if (first === undefined) {
				first = await this.#db.get(key, blobSchema);
				this.#pending.set(key, first);
			}
			if (first === null) {
				const location: BlobLocation = { kind: extent.kind, file: extent.file, fileOffset: extent.fileOffset };
				this.#pending.set(key, location);
				operations.push(put(key, location));
				return extent;
			}
			if (isSamePlace(first, extent) || this.#areEqual(first, extent)) return { ...extent, ...first };
		}
	}

	/** Forgets what was read ahead and closes the packs. */
	close(): void {
		for (const fd of this.#files.values()) if (fd !== null) closeSync(fd);
		this.#files.clear();
		this.#pending.clear();
	}

	#areEqual(first: BlobLocation, extent: Extent & { kind: "pack" | "blob" }): boolean {
		const a = this.#open(first);
		const b = this.#open(extent);
		if (a === null || b === null) return false;
		const left = Buffer.alloc(Math.min(Number(extent.length), WINDOW_BYTES));
		const right = Buffer.alloc(left.length);
		for (let done = 0n; done < extent.length; ) {
			const want = Number(extent.length - done < BigInt(left.length) ? extent.length - done : BigInt(left.length));
			if (!readExactly(a, left, want, first.fileOffset + done)) return false;
			if (!readExactly(b, right, want, extent.fileOffset + done)) return false;
			if (left.compare(right, 0, want, 0, want) !== 0) return false;
			done += BigInt(want);
		}
		return true;
	}

	/** null when the file is missing: then nothing is equal to what it held, and using it is an error later. */
	#open(at: { kind: "pack" | "blob"; file: bigint }): number | null {
		const path = at.kind === "pack" ? packPath(at.file) : blobPath(at.file);
		let fd = this.#files.get(path);
		if (fd === undefined) {
			try {
				fd = openSync(join(this.#store, path), "r");
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
				fd = null;
			}
			this.#files.set(path, fd);
		}
		return fd;
	}
}

function isAddressed(extent: Extent): extent is Extent & { kind: "pack" | "blob" } {
	return extent.kind !== "hole" && extent.length > 0n && extent.length <= MAX_COMPARED_BYTES;
}

function isSamePlace(a: BlobLocation, b: Extent): boolean {
	return a.kind === b.kind && a.file === b.file && a.fileOffset === b.fileOffset;
}

function readExactly(fd: number, into: Buffer, count: number, offset: bigint): boolean {
	for (let done = 0; done < count; ) {
		const read = readSync(fd, into, done, count - done, offset + BigInt(done));
		if (read === 0) return false;
		done += read;
	}
	return true;
}
