/**
 * What a turn (or any stretch of history) changed: pre-images against post-states, one row a path. Reads only the index; for a
 * span that is not over the caller brings what it looks like now.
 */
import type { Counts } from "../daemon/api.js";
import { postKeyText } from "../store/keys.js";
import type {
	AttrsRecord,
	ByteString,
	DataRecord,
	EntryRecord,
	IndexRecord,
	Lane,
	ObjectId,
	PostState,
	SkippedRecord,
	Turn,
} from "../store/records.js";
import type { HistoryStore, PostKey, TurnSummary } from "../store/store.js";
import { digestXattrs } from "../store/xattr-digest.js";
import { joinPath } from "../text/byte-string.js";
import { fileKind } from "./file-kind.js";

/** Whose changes in which spans. */
export interface Stretch {
	lane: Lane;
	/** In order. */
	epochs: number[];
	/** The turn whose left-over processes' later changes count too. */
	turn: number | null;
}

export interface SideState {
	mode: number;
	/** null when it was not kept. */
	size: bigint | null;
}

export interface PathChange {
	path: ByteString;
	status: "A" | "M" | "D" | "R" | "T";
	from: ByteString | null;
	before: SideState | null;
	after: SideState | null;
	/** Process key of the first touch. */
	proc: string | null;
	skipped: string | null;
}

export interface StretchChanges {
	/** By path. */
	changes: PathChange[];
	/** Everything that could not be captured. */
	skipped: { path: ByteString; reason: string }[];
	/** Bytes that are kept for it. */
	bytes: bigint;
}

export function turnStretch(turn: Turn): Stretch {
	return { lane: turn.turn, epochs: turn.epochs, turn: turn.turn };
}

/** @param live present states, for what the newest span (not over yet) has touched */
export async function listChanges(
	store: HistoryStore,
	stretch: Stretch,
	live: [PostKey, PostState][] = [],
): Promise<StretchChanges> {
	const before = new PreImages();
	const after = new PostImages();
	for (const epoch of stretch.epochs) {
		const span = await store.span(epoch);
		const next = await store.span(epoch + 1);
		if (span === null) continue;
		for await (const record of store.records(span.firstSeq, next?.firstSeq)) {
			if (isInLane(record, stretch.lane)) before.add(record);
		}
		for await (const [key, state] of store.postStates(epoch)) after.set(key, state);
	}
	for (const record of stretch.turn === null ? [] : await store.lateRecords(stretch.turn)) {
		before.add(record);
		for (const key of keysOf(record)) {
			const state = "epoch" in record ? await store.postState(record.epoch, key) : null;
			if (state !== null) after.set(key, state);
		}
	}
	for (const [key, state] of live) after.set(key, state);
	return new Comparison(before, after).result();
}

export function countChanges(changes: PathChange[]): Counts {
	const counts = { added: 0, modified: 0, deleted: 0, renamed: 0 };
	const field = { A: "added", M: "modified", T: "modified", D: "deleted", R: "renamed" } as const;
	for (const { status } of changes) counts[field[status]]++;
	return counts;
}

export function summarize(found: StretchChanges): TurnSummary {
	return { counts: countChanges(found.changes), bytes: Number(found.bytes), skipped: found.skipped.length };
}

/** Records without a lane (where a preserved file lies) follow a touch of the same span; they are told apart by object. */
function isInLane(record: IndexRecord, lane: Lane): boolean {
	return !("lane" in record) || record.lane === lane;
}

function keysOf(record: IndexRecord): PostKey[] {
	if (record.type === "entry") return [{ type: "entry", dir: record.dir, name: record.name }];
	if (record.type === "attrs" || record.type === "data") return [{ type: "object", object: record.object }];
	return [];
}

/** The first pre-image of everything touched. */
class PreImages {
	readonly entries = new Map<string, EntryRecord>();
	readonly attrs = new Map<ObjectId, AttrsRecord>();
	readonly data = new Map<ObjectId, DataRecord>();
	readonly preserved = new Set<ObjectId>();
	readonly skipped: SkippedRecord[] = [];
	dataBytes = 0n;

	add(record: IndexRecord): void {
		switch (record.type) {
			case "entry": {
				const key = postKeyText({ type: "entry", dir: record.dir, name: record.name });
				if (!this.entries.has(key)) this.entries.set(key, record);
				return;
			}
			case "attrs":
				if (!this.attrs.has(record.object)) this.attrs.set(record.object, record);
				return;
			case "data":
				if (!this.data.has(record.object)) this.data.set(record.object, record);
				for (const extent of record.extents) if (extent.kind !== "hole") this.dataBytes += extent.length;
				return;
			case "preserved":
				this.preserved.add(record.object);
				return;
			case "skipped":
				this.skipped.push(record);
		}
	}
}

/** The last post-state of everything touched. */
class PostImages {
	readonly #states = new Map<string, PostState>();

	set(key: PostKey, state: PostState): void {
		this.#states.set(postKeyText(key), state);
	}
	entry(key: string): PostState | null {
		return this.#states.get(key) ?? null;
	}
	object(object: ObjectId): PostState | null {
		return this.#states.get(`o/${object}`) ?? null;
	}
}

class Comparison {
	readonly #before: PreImages;
	readonly #after: PostImages;
	readonly #rows: PathChange[] = [];
	/** Objects that a row speaks of already. */
	readonly #told = new Set<ObjectId>();

	constructor(before: PreImages, after: PostImages) {
		this.#before = before;
		this.#after = after;
	}

	result(): StretchChanges {
		this.#compareEntries();
		this.#compareObjects();
		this.#rows.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
		let bytes = this.#before.dataBytes;
		for (const object of this.#before.preserved) {
			const state = this.#after.object(object);
			if (state?.stored) bytes += state.size;
		}
		const skipped = this.#before.skipped.map((record) => ({ path: this.#skippedPath(record), reason: record.reason }));
		return { changes: this.#rows, skipped, bytes };
	}

	#compareEntries(): void {
		// Objects that left a name, and where; one that arrives elsewhere was renamed.
		const left = new Map<ObjectId, EntryRecord[]>();
		for (const [key, entry] of this.#before.entries) {
			if (entry.object === null || this.#after.entry(key)?.object === entry.object) continue;
			left.set(entry.object, [...(left.get(entry.object) ?? []), entry]);
		}
		const arrivals: { entry: EntryRecord; state: PostState; from: EntryRecord | null }[] = [];
		const departures: EntryRecord[] = [];
		for (const [key, entry] of this.#before.entries) {
			const state = this.#after.entry(key);
			// Nothing is known of what it became (somebody went on changing it): what it was is all there is to say.
			if (state === null || (state.object === null && !state.unknown)) {
				if (entry.object !== null && state !== null) departures.push(entry);
				continue;
			}
			if (state.object === entry.object && entry.object !== null) continue;
			const from = state.object === null ? null : (left.get(state.object)?.shift() ?? null);
			arrivals.push({ entry, state, from });
		}
		const renamed = new Set(arrivals.map(({ from }) => from).filter((from) => from !== null));
		for (const { entry, state, from } of arrivals) this.#tellArrival(entry, state, from, renamed.has(entry));
		for (const entry of departures) {
			if (renamed.has(entry) || entry.object === null) continue;
			this.#told.add(entry.object);
			this.#row(entry, "D", this.#pathOfEntry(entry), this.#sideBefore(entry.object, entry.mode), null);
		}
	}

	#tellArrival(entry: EntryRecord, state: PostState, from: EntryRecord | null, oldWentElsewhere: boolean): void {
		const path = this.#pathOfEntry(entry);
		const after = { mode: state.mode, size: state.size };
		if (state.object !== null) this.#told.add(state.object);
		if (from?.object) {
			const row = this.#row(entry, "R", path, this.#sideBefore(from.object, from.mode, state), after);
			row.from = joinPath(from.parentPath, from.name);
			return;
		}
		if (entry.object === null || oldWentElsewhere) {
			this.#row(entry, "A", path, null, after);
			return;
		}
		this.#told.add(entry.object);
		const status = fileKind(entry.mode) === fileKind(state.mode) ? "M" : "T";
		this.#row(entry, status, path, this.#sideBefore(entry.object, entry.mode), after);
	}

	/** Objects changed in place, under names that the turn left alone. */
	#compareObjects(): void {
		for (const [object, attrs] of this.#before.attrs) {
			const state = this.#after.object(object);
			if (state === null || state.object === null || state.stored || this.#told.has(object)) continue;
			if (!this.#isModified(object, attrs, state)) continue;
			this.#rows.push({
				path: state.path,
				status: "M",
				from: null,
				before: { mode: attrs.mode, size: attrs.size },
				after: { mode: state.mode, size: state.size },
				proc: (this.#before.data.get(object) ?? attrs).proc,
				skipped: this.#skippedReason(object, null, ""),
			});
		}
	}

	#isModified(object: ObjectId, attrs: AttrsRecord, state: PostState): boolean {
		if (this.#before.data.has(object) || this.#skippedReason(object, null, "") !== null) return true;
		if (attrs.mode !== state.mode || attrs.uid !== state.uid || attrs.gid !== state.gid) return true;
		if (digestXattrs(attrs.xattrs) !== state.xattrs) return true;
		// A folder's times change with what is in it, which has rows of its own.
		return fileKind(attrs.mode) !== "directory" && (attrs.mtimeNs !== state.mtimeNs || attrs.size !== state.size);
	}

	#row(
		entry: EntryRecord,
		status: PathChange["status"],
		path: ByteString,
		before: SideState | null,
		after: SideState | null,
	): PathChange {
		const skipped = this.#skippedReason(entry.object, entry.dir, entry.name);
		const row = { path, status, from: null, before, after, proc: entry.proc, skipped };
		this.#rows.push(row);
		return row;
	}

	/**
	 * @param mode of its entry record, whose permission bits are not reliable; @param unchanged its present state, which counts
	 * when nothing else is known: then it was not changed
	 */
	#sideBefore(object: ObjectId, mode: number, unchanged: PostState | null = null): SideState {
		const attrs = this.#before.attrs.get(object);
		if (attrs !== undefined) return { mode: attrs.mode, size: attrs.size };
		const kept = this.#after.object(object) ?? unchanged;
		if (kept !== null && kept.object !== null) return { mode: kept.mode, size: kept.size };
		return { mode, size: null };
	}

	/** As at the end of the stretch; where it was when the folder has gone too. */
	#pathOfEntry(entry: EntryRecord): ByteString {
		const state = this.#after.entry(postKeyText({ type: "entry", dir: entry.dir, name: entry.name }));
		return state !== null && state.path !== "" ? state.path : joinPath(entry.parentPath, entry.name);
	}

	#skippedReason(object: ObjectId | null, dir: ObjectId | null, name: ByteString): string | null {
		const found = this.#before.skipped.find(
			(record) =>
				(object !== null && record.object === object) || (dir !== null && record.dir === dir && record.name === name),
		);
		return found?.reason ?? null;
	}

	#skippedPath(record: SkippedRecord): ByteString {
		if (record.object !== null) {
			const state = this.#after.object(record.object);
			if (state !== null && state.path !== "" && !state.stored) return state.path;
			const attrs = this.#before.attrs.get(record.object);
			if (attrs !== undefined) return attrs.path;
		}
		if (record.dir !== null) {
			const key = postKeyText({ type: "entry", dir: record.dir, name: record.name });
			const entry = this.#before.entries.get(key);
			if (entry !== undefined) return this.#pathOfEntry(entry);
			const state = this.#after.entry(key);
			if (state !== null && state.path !== "") return state.path;
		}
		return record.name;
	}
}
