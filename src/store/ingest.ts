/**
 * Moves the journal into the index. Idempotent: a record that is in already is known by its number, and the last number is written
 * in the same batch as the records. A file goes only after that batch is on stable storage.
 *
 * Ids that different mounts gave to one inode are joined here: an inode that the index knows by (device, number, birth time)
 * is the same object as before, whatever id the engine gave it; one that was born under the engine is new, unless a rewind
 * claimed it for an old object.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { TurnfsError } from "../errors.js";
import { bindingSchema, type Meta, objectIdSchema } from "./codec.js";
import { ContentAddresser } from "./content-address.js";
import { del, type Operation, put } from "./index-db.js";
import { type JournalFile, type JournalRecord, listJournal, readJournalFile } from "./journal-reader.js";
import * as keys from "./keys.js";
import type { Binding, IndexRecord, ObjectId, SkippedRecord } from "./records.js";
import { SpanKeeper } from "./span-keeper.js";
import { type HistoryStore, isTurnLane, ROOT_OBJECT } from "./store.js";

/** Records that go into one batch. */
const CHUNK_RECORDS = 20_000;

export interface IngestReport {
	/** The last record that is in the index now. */
	lastSeq: bigint;
	records: number;
	/** Files that did not end as they should: what was cut off, and why. */
	torn: { file: string; droppedBytes: number; reason: string }[];
}

export interface IngestOptions {
	/** True when no engine writes any more: unsealed files are read to their last valid record and deleted too. */
	engineGone: boolean;
}

/**
 * Ingests every sealed file (with `engineGone` every file), oldest first, and deletes it.
 * @throws TURNFS_STORE_DAMAGED for a valid frame that makes no sense, TURNFS_STORE_TOO_NEW for a newer journal
 */
export async function ingestJournal(store: HistoryStore, options: IngestOptions): Promise<IngestReport> {
	const report: IngestReport = { lastSeq: (await store.meta()).lastSeq, records: 0, torn: [] };
	for (const name of listJournal(store.folder)) {
		const file = readJournalFile(store.folder, name);
		const shown = join(store.shownPath, "journal", name);
		if (file.unknownVersion !== null) {
			throw new TurnfsError("TURNFS_STORE_TOO_NEW", { store: shown, found: file.unknownVersion, known: 1 });
		}
		if (file.malformed) {
			throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: shown, reason: file.reason ?? "a record makes no sense" });
		}
		if (!file.sealed && !options.engineGone) break;
		if (file.reason !== null) report.torn.push({ file: shown, droppedBytes: file.droppedBytes, reason: file.reason });
		report.records += await ingestFile(store, file);
		rmSync(join(store.folder, "journal", name));
	}
	report.lastSeq = (await store.meta()).lastSeq;
	return report;
}

async function ingestFile(store: HistoryStore, file: JournalFile): Promise<number> {
	const meta = await store.meta();
	const records = file.records.filter((record) => record.seq > meta.lastSeq);
	const header = file.records[0];
	const session = header?.type === "header" ? header.session : meta.session;
	const content = new ContentAddresser(store.db, store.folder);
	try {
		for (let at = 0; at < records.length; at += CHUNK_RECORDS) {
			const chunk = new Chunk(store, content, session);
			await chunk.ingest(records.slice(at, at + CHUNK_RECORDS));
		}
	} finally {
		content.close();
	}
	return records.length;
}

/** One batch: reads what the records need from the index in a few large reads, joins ids, writes everything at once. */
class Chunk {
	readonly #store: HistoryStore;
	readonly #content: ContentAddresser;
	readonly #session: string;
	readonly #operations: Operation[] = [];
	/** The engine's id → ours. */
	readonly #canonical = new Map<ObjectId, ObjectId>();
	readonly #bindings = new Map<ObjectId, Binding>();
	readonly #changedBindings = new Set<ObjectId>();
	readonly #staleSummaries = new Set<number>();

	constructor(store: HistoryStore, content: ContentAddresser, session: string) {
		this.#store = store;
		this.#content = content;
		this.#session = session;
	}

	async ingest(records: JournalRecord[]): Promise<void> {
		const meta: Meta = { ...(await this.#store.meta()) };
		if (meta.session !== this.#session) {
			meta.session = this.#session;
			meta.sessionEnd = null;
		}
		const spans = await SpanKeeper.load(this.#store);
		await this.#joinIds(records);
		await this.#loadBindings(records);
		await this.#content.prefetch(records.flatMap((record) => (record.type === "data" ? record.extents : [])));
		for (const record of records) {
			if (record.seq > meta.lastSeq + 1n) this.#noteLoss(meta.lastSeq + 1n, record.seq, spans);
			await this.#add(record, meta, spans);
			meta.lastSeq = record.seq;
		}
		for (const object of this.#changedBindings) {
			this.#operations.push(put(keys.objectKey(object), this.#bindings.get(object)));
		}
		for (const turn of this.#staleSummaries) this.#operations.push(del(keys.summaryKey(turn)));
		this.#operations.push(...spans.operations(), put(keys.META, meta));
		await this.#store.db.write(this.#operations, true);
	}

	/** Which of our objects each id of the engine is. Binds decide; other ids were decided by an earlier batch. */
	async #joinIds(records: JournalRecord[]): Promise<void> {
		const binds = records.filter((record) => record.type === "bind");
		const mentioned = [...new Set(records.flatMap(mentionedIds))].filter((id) => id !== ROOT_OBJECT);
		const [aliases, claims, known] = await Promise.all([
			this.#store.db.getMany(mentioned.map(keys.aliasKey), objectIdSchema),
			this.#store.db.getMany(binds.map(keys.claimKey), objectIdSchema),
			this.#store.db.getMany(binds.map(keys.identityKey), objectIdSchema),
		]);
		this.#canonical.set(ROOT_OBJECT, ROOT_OBJECT);
		mentioned.forEach((id, i) => {
			const alias = aliases[i];
			if (alias) this.#canonical.set(id, alias);
		});
		const identities = new Map<string, ObjectId>();
		binds.forEach((bind, i) => {
			const identity = keys.identityKey(bind);
			const claimed = claims[i];
			let object = this.#canonical.get(bind.object);
			if (object === undefined) {
				const before = identities.get(identity) ?? known[i];
				if (claimed) object = claimed;
				else if (!bind.born && before) object = before;
				else object = bind.object;
				this.#canonical.set(bind.object, object);
				if (object !== bind.object) this.#operations.push(put(keys.aliasKey(bind.object), object));
			}
			if (claimed) this.#operations.push(del(keys.claimKey(bind)));
			identities.set(identity, object);
			this.#operations.push(put(identity, object));
		});
	}

	async #loadBindings(records: JournalRecord[]): Promise<void> {
		const wanted = [...new Set(records.flatMap(boundIds).map((id) => this.#id(id)))];
		const found = await this.#store.db.getMany(wanted.map(keys.objectKey), bindingSchema);
		wanted.forEach((object, i) => {
			const binding = found[i];
			if (binding) this.#bindings.set(object, binding);
		});
	}

	#id(id: ObjectId): ObjectId {
		return this.#canonical.get(id) ?? id;
	}

	#idOrNone(id: ObjectId | null): ObjectId | null {
		return id === null ? null : this.#id(id);
	}

	#changeBinding(object: ObjectId, change: (binding: Binding) => Binding): void {
		const binding = this.#bindings.get(object);
		// An object without a Bind can't be found anyway.
		if (binding === undefined) return;
		this.#bindings.set(object, change(binding));
		this.#changedBindings.add(object);
	}

	async #add(record: JournalRecord, meta: Meta, spans: SpanKeeper): Promise<void> {
		switch (record.type) {
			case "header":
			case "seal":
				return;
			case "span":
				spans.begin(record);
				meta.lastEpoch = Math.max(meta.lastEpoch, record.epoch);
				meta.lastTurn = Math.max(meta.lastTurn, spans.current?.turn ?? 0);
				return;
			case "unmount":
				spans.close(record.timeNs);
				meta.sessionEnd = "unmounted";
				return;
			case "process":
				this.#operations.push(
					put(keys.processKey(`${this.#session}/${record.proc}`), {
						pid: record.pid,
						comm: record.comm,
						command: record.command,
						lane: record.lane,
					}),
				);
				return;
			case "bind":
				this.#bind(record);
				if (BigInt(record.object) >= meta.nextObject) meta.nextObject = BigInt(record.object) + 1n;
				return;
			default:
				await this.#addToHistory(record, spans);
		}
	}

	#bind(record: JournalRecord & { type: "bind" }): void {
		const object = this.#id(record.object);
		const before = this.#bindings.get(object);
		const sameInode =
			before !== undefined &&
			before.dev === record.dev &&
			before.ino === record.ino &&
			before.birthNs === record.birthNs;
		this.#bindings.set(object, {
			object,
			dev: record.dev,
			ino: record.ino,
			birthNs: record.birthNs,
			mode: record.mode,
			parent: object === ROOT_OBJECT ? null : this.#idOrNone(record.parent),
			name: object === ROOT_OBJECT ? "" : record.name,
			handle: record.handle,
			// Another inode now (a claim): what lies in the store is no link of it.
			place: sameInode ? before.place : null,
			morePlaces: sameInode ? before.morePlaces : [],
		});
		this.#changedBindings.add(object);
	}

	async #addToHistory(
		record: Exclude<JournalRecord, { type: "header" | "seal" | "span" | "unmount" | "process" | "bind" }>,
		spans: SpanKeeper,
	): Promise<void> {
		const kept = await this.#toIndexRecord(record);
		this.#operations.push(put(keys.recordKey(kept.seq), kept));
		switch (kept.type) {
			case "entry":
				// The operation that touched the name takes this object away from it; Moved says where it went.
				if (kept.object !== null) {
					this.#changeBinding(kept.object, (binding) =>
						binding.parent === kept.dir && binding.name === kept.name
							? { ...binding, parent: null, name: "" }
							: binding,
					);
				}
				break;
			case "moved":
				this.#changeBinding(kept.object, (binding) => ({ ...binding, parent: kept.dir, name: kept.name }));
				break;
			case "preserved":
				this.#changeBinding(kept.object, (binding) => withPlace(binding, kept.place));
				break;
			case "dropped":
				this.#changeBinding(kept.object, (binding) => withoutPlace(binding, kept.place));
				break;
		}
		if ("lane" in kept && isTurnLane(kept.lane) && kept.lane !== spans.current?.lane) {
			this.#operations.push(put(keys.lateKey(kept.lane, kept.seq), 1));
			this.#staleSummaries.add(kept.lane);
		}
	}

	async #toIndexRecord(
		record: Exclude<JournalRecord, { type: "header" | "seal" | "span" | "unmount" | "process" | "bind" }>,
	): Promise<IndexRecord> {
		const proc = "proc" in record && record.proc !== 0 ? `${this.#session}/${record.proc}` : null;
		switch (record.type) {
			case "entry":
				return { ...record, proc, dir: this.#id(record.dir), object: this.#idOrNone(record.object) };
			case "attrs":
				return {
					...record,
					proc,
					object: this.#id(record.object),
					target: (record.mode & 0o170000) === 0o120000 ? record.target : null,
				};
			case "data": {
				const extents = [];
				for (const extent of record.extents) extents.push(await this.#content.address(extent, this.#operations));
				return { ...record, proc, object: this.#id(record.object), extents };
			}
			case "skipped":
				return {
					...record,
					proc,
					object: this.#idOrNone(record.object),
					dir: this.#idOrNone(record.dir),
					reason: Buffer.from(record.reason, "latin1").toString("utf8"),
				};
			case "preserved":
				return { ...record, object: this.#id(record.object) };
			case "dropped":
				return { ...record, object: this.#id(record.object) };
			case "moved":
				return { ...record, object: this.#id(record.object), dir: this.#id(record.dir) };
		}
	}

	/** Records that a power loss took from the middle of the journal. Log, show and rewind say it, as of any other gap. */
	#noteLoss(firstLost: bigint, next: bigint, spans: SpanKeeper): void {
		const loss: SkippedRecord = {
			type: "skipped",
			seq: firstLost,
			epoch: spans.current?.epoch ?? 0,
			lane: spans.current?.lane ?? 0,
			proc: null,
			timeNs: spans.current?.beginNs ?? 0n,
			object: null,
			dir: null,
			name: "",
			what: "entry",
			errno: 5,
			reason: `${next - firstLost} records of the journal are lost`,
		};
		this.#operations.push(put(keys.recordKey(firstLost), loss));
	}
}

function withPlace(binding: Binding, place: string): Binding {
	if (binding.place === null) return { ...binding, place };
	if (binding.place === place || binding.morePlaces.includes(place)) return binding;
	return { ...binding, morePlaces: [...binding.morePlaces, place] };
}

function withoutPlace(binding: Binding, place: string): Binding {
	const left = [binding.place, ...binding.morePlaces].filter((at) => at !== null && at !== place);
	const [first = null, ...more] = left as string[];
	return { ...binding, place: first, morePlaces: more };
}

function mentionedIds(record: JournalRecord): ObjectId[] {
	switch (record.type) {
		case "bind":
			return record.parent === null ? [record.object] : [record.object, record.parent];
		case "entry":
			return record.object === null ? [record.dir] : [record.dir, record.object];
		case "moved":
			return [record.object, record.dir];
		case "attrs":
		case "data":
		case "preserved":
		case "dropped":
			return [record.object];
		case "skipped":
			return [record.object, record.dir].filter((id) => id !== null);
		default:
			return [];
	}
}

/** Whose bindings this record may change. */
function boundIds(record: JournalRecord): ObjectId[] {
	switch (record.type) {
		case "bind":
		case "moved":
		case "preserved":
		case "dropped":
			return [record.object];
		case "entry":
			return record.object === null ? [] : [record.object];
		default:
			return [];
	}
}
