/**
 * The index: LevelDB with checked values. Only the daemon opens it (LevelDB's own lock sees to that).
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { type BatchOperation, Level } from "level";
import type { z } from "zod";
import { describeCause, TurnfsError } from "../errors.js";
import { encodeValue } from "./codec.js";
import { INDEX } from "./layout.js";

type Database = Level<string, string>;
export type Operation = BatchOperation<Database, string, string>;

/**
 * A put for `IndexDb.write`. LevelDB does not verify its blocks' checksums when it reads, so every value has one of its own, over
 * key and value: a flipped bit, or a value under another key, is an error and never a wrong tree.
 */
export function put(key: string, value: unknown): Operation {
	const text = encodeValue(value);
	return { type: "put", key, value: `${checksum(key, text)}${text}` };
}

const CHECKSUM_DIGITS = 8;

function checksum(key: string, text: string): string {
	return crc32(text, crc32(key)).toString(16).padStart(CHECKSUM_DIGITS, "0");
}

export function del(key: string): Operation {
	return { type: "del", key };
}

export class IndexDb {
	readonly #db: Database;
	/** For messages: the path as the user knows it. */
	readonly #shown: string;

	private constructor(db: Database, shown: string) {
		this.#db = db;
		this.#shown = shown;
	}

	/**
	 * @param store where the store can be reached; @param shown its path for messages
	 * @throws TURNFS_STORE_LOCKED, TURNFS_STORE_DAMAGED
	 */
	static async open(store: string, shown: string): Promise<IndexDb> {
		const location = join(store, INDEX);
		const shownIndex = join(shown, INDEX);
		checkIndexFolder(store, location, shownIndex);
		const db: Database = new Level(location, { keyEncoding: "utf8", valueEncoding: "utf8" });
		try {
			await db.open();
		} catch (error) {
			const cause = (error as { cause?: { code?: string; message?: string } }).cause ?? (error as Error);
			if ((cause as { code?: string }).code === "LEVEL_LOCKED") {
				throw new TurnfsError("TURNFS_STORE_LOCKED", { store: shown, by: "" }, error);
			}
			// LevelDB names its file by the path we gave, which means nothing to the user.
			const reason = describeCause(cause).replaceAll(location, shownIndex);
			throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: shownIndex, reason }, error);
		}
		return new IndexDb(db, shownIndex);
	}

	close(): Promise<void> {
		return this.#db.close();
	}

	async get<S extends z.ZodType>(key: string, schema: S): Promise<z.output<S> | null> {
		const text = await this.#guard(() => this.#db.get(key));
		return text === undefined ? null : this.#parse(key, text, schema);
	}

	/** In the order of `keys`; null for those that aren't there. */
	async getMany<S extends z.ZodType>(keys: string[], schema: S): Promise<(z.output<S> | null)[]> {
		if (keys.length === 0) return [];
		const texts = await this.#guard(() => this.#db.getMany(keys));
		return texts.map((text, i) => (text === undefined ? null : this.#parse(keys[i] ?? "", text, schema)));
	}

	/** Keys from `from` up to before `to`, in order (or from the end), with their values. */
	async *range<S extends z.ZodType>(
		from: string,
		to: string,
		schema: S,
		options: { reverse?: boolean; limit?: number } = {},
	): AsyncGenerator<[key: string, value: z.output<S>]> {
		const iterator = this.#db.iterator({
			gte: from,
			lt: to,
			reverse: options.reverse ?? false,
			limit: options.limit ?? -1,
		});
		try {
			for (;;) {
				const items = await this.#guard(() => iterator.nextv(1000));
				if (items.length === 0) return;
				for (const [key, text] of items) yield [key, this.#parse(key, text, schema)];
			}
		} finally {
			await iterator.close();
		}
	}

	/** Every key that begins with `prefix`. */
	prefix<S extends z.ZodType>(prefix: string, schema: S, options: { reverse?: boolean; limit?: number } = {}) {
		return this.range(prefix, after(prefix), schema, options);
	}

	async keys(prefix: string): Promise<string[]> {
		return this.#guard(() => this.#db.keys({ gte: prefix, lt: after(prefix) }).all());
	}

	/** All or nothing. @param sync true: on stable storage when this returns */
	async write(operations: Operation[], sync: boolean): Promise<void> {
		if (operations.length === 0) return;
		await this.#guard(() => this.#db.batch(operations, { sync }));
	}

	/** @throws TURNFS_STORE_DAMAGED naming the key */
	damaged(key: string, reason: string, cause?: unknown): TurnfsError {
		return new TurnfsError("TURNFS_STORE_DAMAGED", { file: this.#shown, reason: `${key}: ${reason}` }, cause);
	}

	#parse<S extends z.ZodType>(key: string, value: string, schema: S): z.output<S> {
		const text = value.slice(CHECKSUM_DIGITS);
		if (value.slice(0, CHECKSUM_DIGITS) !== checksum(key, text)) throw this.damaged(key, "its checksum is wrong");
		let json: unknown;
		try {
			json = JSON.parse(text);
		} catch (error) {
			throw this.damaged(key, describeCause(error), error);
		}
		const parsed = schema.safeParse(json);
		if (parsed.success) return parsed.data;
		const issue = parsed.error.issues[0];
		throw this.damaged(key, `${issue?.path.join(".") || "the value"} is not what it must be`, parsed.error);
	}

	async #guard<T>(call: () => Promise<T>): Promise<T> {
		try {
			return await call();
		} catch (error) {
			const code = (error as { code?: string }).code;
			if (code === "LEVEL_DATABASE_NOT_OPEN") throw error;
			const reason = describeCause(error);
			// A full disk is no damage: what was there is still there.
			if (code === "LEVEL_IO_ERROR")
				throw new TurnfsError("TURNFS_STORE_UNUSABLE", { store: this.#shown, reason }, error);
			throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: this.#shown, reason }, error);
		}
	}
}

/** The first key after all that begin with `prefix`; prefixes end in a character below U+FFFF. */
function after(prefix: string): string {
	return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/**
 * LevelDB makes a new, empty database where it finds none. In a store that has kept something already that would lose the history
 * without a word.
 */
function checkIndexFolder(store: string, location: string, shown: string): void {
	const names = existsSync(location) ? readdirSync(location) : [];
	if (names.includes("CURRENT")) return;
	if (names.some((name) => /\.(ldb|sst|log)$|^MANIFEST-/.test(name))) {
		throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: join(shown, "CURRENT"), reason: "the file is missing" });
	}
	const kept = ["packs", "preserved", "blobs"].find((name) => readdirSync(join(store, name)).length > 0);
	if (kept !== undefined) {
		throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: shown, reason: `it is empty, but ${kept}/ is not` });
	}
}
