/**
 * What the history knows, read from the index; the few writes that are not the journal's (claims, post-states, rewinds). The
 * journal's records come in through `ingest.ts`.
 */
import { TurnfsError } from "../errors.js";
import { joinPath } from "../text/byte-string.js";
import {
	bindingSchema,
	emptyMeta,
	epochSchema,
	type Meta,
	metaSchema,
	objectIdSchema,
	postStateSchema,
	processSchema,
	type RewindEntry,
	recordSchema,
	rewindEntrySchema,
	type StoredTurn,
	spanSchema,
	storedTurnSchema,
	summarySchema,
	type TurnSummary,
	turnOfStored,
} from "./codec.js";
import { del, IndexDb, type Operation, put } from "./index-db.js";
import * as keys from "./keys.js";
import type {
	Binding,
	ByteString,
	IndexRecord,
	Lane,
	ObjectId,
	PostState,
	ProcessInfo,
	Span,
	Turn,
} from "./records.js";

export type { RewindEntry, TurnSummary } from "./codec.js";
export type { Identity, PostKey } from "./keys.js";

/** The object that is the project folder. */
export const ROOT_OBJECT: ObjectId = "1";
/** Lanes of rewinds and redos begin here: the bit plus the epoch of their span. */
export const REWIND_LANE = 0x80000000;

export function isTurnLane(lane: Lane): boolean {
	return lane > 0 && lane < REWIND_LANE;
}

/** Journal positions have 64 bits. */
const LAST_SEQ = 0xffff_ffff_ffff_ffffn;

export class HistoryStore {
	/** For `ingest.ts` only. */
	readonly db: IndexDb;
	/** Where the store's folder can be reached: `/proc/self/fd/<n>` in the daemon. */
	readonly folder: string;
	/** Its path as the user knows it. */
	readonly shownPath: string;

	private constructor(db: IndexDb, folder: string, shownPath: string) {
		this.db = db;
		this.folder = folder;
		this.shownPath = shownPath;
	}

	/** @throws TURNFS_STORE_LOCKED, TURNFS_STORE_DAMAGED */
	static async open(folder: string, shownPath: string = folder): Promise<HistoryStore> {
		return new HistoryStore(await IndexDb.open(folder, shownPath), folder, shownPath);
	}

	close(): Promise<void> {
		return this.db.close();
	}

	/** The counters; those of an empty store when nothing was ingested yet. */
	async meta(): Promise<Meta> {
		return (await this.db.get(keys.META, metaSchema)) ?? emptyMeta;
	}

	// --- records ---

	/** Records in journal order, from `fromSeq` up to before `endSeq`. */
	async *records(fromSeq: bigint, endSeq: bigint = LAST_SEQ): AsyncGenerator<IndexRecord> {
		for await (const [key, record] of this.db.range(keys.recordKey(fromSeq), keys.recordKey(endSeq), recordSchema)) {
			if (keys.recordKey(record.seq) !== key) throw this.db.damaged(key, `it says it is record ${record.seq}`);
			yield record;
		}
	}

	/** Records of a turn's left-over processes, made after its spans; in journal order. */
	async lateRecords(turn: number): Promise<IndexRecord[]> {
		const prefix = keys.lateKey(turn, 0n).slice(0, -16);
		const late = await this.db.keys(prefix);
		const recordKeys = late.map((key) => `rec/${key.slice(prefix.length)}`);
		const found = await this.db.getMany(recordKeys, recordSchema);
		return found.map((record, i) => {
			if (record === null) throw this.db.damaged(recordKeys[i] ?? "", "the record is missing");
			return record;
		});
	}

	/** @param proc a record's `proc` */
	process(proc: string): Promise<ProcessInfo | null> {
		return this.db.get(keys.processKey(proc), processSchema);
	}

	// --- spans and turns ---

	span(epoch: number): Promise<Span | null> {
		return this.db.get(keys.spanKey(epoch), spanSchema);
	}

	/** All spans, oldest first (`reverse`: newest first). */
	async *spans(options: { reverse?: boolean } = {}): AsyncGenerator<Span> {
		for await (const [, span] of this.db.prefix("span/", spanSchema, options)) yield span;
	}

	/** The newest span, or null in an empty store. */
	async lastSpan(): Promise<Span | null> {
		for await (const span of this.spans({ reverse: true })) return span;
		return null;
	}

	async turn(turn: number): Promise<Turn | null> {
		const stored = await this.db.get(keys.turnKey(turn), storedTurnSchema);
		return stored === null ? null : turnOfStored(stored);
	}

	/** @throws TURNFS_UNKNOWN_TURN */
	async requireTurn(turn: number): Promise<Turn> {
		const found = await this.turn(turn);
		if (found === null) throw new TurnfsError("TURNFS_UNKNOWN_TURN", { turn });
		return found;
	}

	/** All turns, oldest first (`reverse`: newest first); rewound ones included. */
	async *turns(options: { reverse?: boolean } = {}): AsyncGenerator<Turn> {
		for await (const [, stored] of this.db.prefix("turn/", storedTurnSchema, options)) yield turnOfStored(stored);
	}

	/** The newest turn that is not rewound, an open one included. */
	async lastTurn(): Promise<Turn | null> {
		for await (const turn of this.turns({ reverse: true })) if (turn.state !== "rewound") return turn;
		return null;
	}

	/** The turn that is open, or null. */
	async openTurn(): Promise<Turn | null> {
		for await (const turn of this.turns({ reverse: true })) {
			if (turn.state === "open") return turn;
			if (turn.state === "ended") return null;
		}
		return null;
	}

	/** Rewound turns leave the default listing and can't be rewound again. @param epoch of the rewind's span */
	markRewound(turns: number[], epoch: number): Promise<void> {
		return this.#changeTurns(turns, (turn) => ({ ...turn, rewoundBy: epoch }));
	}

	/** A redo has brought them back. */
	markLive(turns: number[]): Promise<void> {
		return this.#changeTurns(turns, (turn) => ({ ...turn, rewoundBy: null }));
	}

	async #changeTurns(turns: number[], change: (turn: StoredTurn) => StoredTurn): Promise<void> {
		const operations: Operation[] = [];
		for (const turn of turns) {
			const stored = await this.db.get(keys.turnKey(turn), storedTurnSchema);
			if (stored === null) throw new TurnfsError("TURNFS_UNKNOWN_TURN", { turn });
			operations.push(put(keys.turnKey(turn), change(stored)));
		}
		await this.db.write(operations, true);
	}

	/** Ends the newest span (and its turn) when no engine will: after a crash. */
	async closeLastSpan(endNs: bigint): Promise<void> {
		const span = await this.lastSpan();
		if (span === null || span.endNs !== null) return;
		const end = endNs > span.beginNs ? endNs : span.beginNs;
		const operations = [put(keys.spanKey(span.epoch), { ...span, endNs: end })];
		if (span.turn !== null) {
			const turn = await this.db.get(keys.turnKey(span.turn), storedTurnSchema);
			if (turn !== null && turn.endNs === null) operations.push(put(keys.turnKey(turn.turn), { ...turn, endNs: end }));
		}
		await this.db.write(operations, true);
	}

	// --- objects ---

	binding(object: ObjectId): Promise<Binding | null> {
		return this.db.get(keys.objectKey(object), bindingSchema);
	}

	/** In the order asked; null for unknown objects. */
	bindings(objects: ObjectId[]): Promise<(Binding | null)[]> {
		return this.db.getMany(objects.map(keys.objectKey), bindingSchema);
	}

	/** The object that an inode is, or null when the history has not met it. */
	lookupIdentity(identity: keys.Identity): Promise<ObjectId | null> {
		return this.db.get(keys.identityKey(identity), objectIdSchema);
	}

	lookupIdentities(identities: keys.Identity[]): Promise<(ObjectId | null)[]> {
		return this.db.getMany(identities.map(keys.identityKey), objectIdSchema);
	}

	/**
	 * Says that an inode which a rewind has made is an old object come back (a folder made again, a copied file). Must be called
	 * before the journal that holds its making is ingested: no ingest runs while a rewind is applied.
	 */
	claim(identity: keys.Identity, object: ObjectId): Promise<void> {
		return this.db.write([put(keys.claimKey(identity), object)], true);
	}

	/**
	 * Where an object is by its last known place: "" for the project folder, null when it has none (deleted, or never named).
	 * Going by the present bindings, so right as of the last ingest.
	 */
	async pathOf(object: ObjectId, known: Map<ObjectId, Binding | null> = new Map()): Promise<ByteString | null> {
		let path: ByteString | null = null;
		const seen = new Set<ObjectId>();
		for (let at = object; at !== ROOT_OBJECT; ) {
			// A loop can only come from damage or from a rename that was not ingested yet; it is no place in the tree.
			if (seen.has(at)) return null;
			seen.add(at);
			let binding = known.get(at);
			if (binding === undefined) {
				binding = await this.binding(at);
				known.set(at, binding);
			}
			if (binding === null || binding.parent === null || binding.name === "") return null;
			path = path === null ? binding.name : joinPath(binding.name, path);
			at = binding.parent;
		}
		return path ?? "";
	}

	// --- post-states ---

	postState(epoch: number, key: keys.PostKey): Promise<PostState | null> {
		return this.db.get(keys.postKey(epoch, key), postStateSchema);
	}

	/** Every post-state of a span. */
	async *postStates(epoch: number): AsyncGenerator<[key: keys.PostKey, state: PostState]> {
		const prefix = `post/${keys.epochKey(epoch)}/`;
		for await (const [text, state] of this.db.prefix(prefix, postStateSchema)) {
			const key = keys.parsePostKey(text.slice(prefix.length));
			if (key === null) throw this.db.damaged(text, "the key names nothing");
			yield [key, state];
		}
	}

	/** Also notes that the span's post-states are complete. */
	putPostStates(epoch: number, states: [key: keys.PostKey, state: PostState][]): Promise<void> {
		const operations = states.map(([key, state]) => put(keys.postKey(epoch, key), state));
		return this.db.write([...operations, put(keys.POST_EPOCH, epoch)], true);
	}

	/** The newest span whose post-states are complete; 0 when there is none. */
	async lastPostEpoch(): Promise<number> {
		return (await this.db.get(keys.POST_EPOCH, epochSchema)) ?? 0;
	}

	/** How the journal's session ended, once that is known. */
	async endSession(how: "unmounted" | "crashed"): Promise<void> {
		await this.db.write([put(keys.META, { ...(await this.meta()), sessionEnd: how })], true);
	}

	// --- rewinds ---

	/** Writes the rewind's journal entry, new or changed; on stable storage when it returns. */
	putRewind(entry: RewindEntry): Promise<void> {
		return this.db.write([put(keys.rewindKey(entry.epoch), entry)], true);
	}

	rewind(epoch: number): Promise<RewindEntry | null> {
		return this.db.get(keys.rewindKey(epoch), rewindEntrySchema);
	}

	/** Newest first. */
	async *rewinds(): AsyncGenerator<RewindEntry> {
		for await (const [, entry] of this.db.prefix("rewind/", rewindEntrySchema, { reverse: true })) yield entry;
	}

	// --- summaries ---

	summary(turn: number): Promise<TurnSummary | null> {
		return this.db.get(keys.summaryKey(turn), summarySchema);
	}

	putSummary(turn: number, summary: TurnSummary): Promise<void> {
		return this.db.write([put(keys.summaryKey(turn), summary)], false);
	}

	dropSummary(turn: number): Promise<void> {
		return this.db.write([del(keys.summaryKey(turn))], false);
	}

	/** How many turns there are, rewound ones included. */
	async countTurns(): Promise<number> {
		return (await this.db.keys("turn/")).length;
	}

	/** Blob addresses seen: only for checks and tests. */
	blobAddresses(): Promise<string[]> {
		return this.db.keys("blob/");
	}
}
