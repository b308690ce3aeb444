/** The records of a stretch of history by what they are about, and the questions that conflicts and plans ask of them. Pure. */
import type { AttrsRecord, DataRecord, EntryRecord, IndexRecord, ObjectId } from "../store/records.js";
import { type EntryKey, entryKey, FIRST_REWIND_LANE, type SpanPost } from "./types.js";

export class History {
	readonly records: readonly IndexRecord[];
	private readonly entries = new Map<EntryKey, EntryRecord[]>();
	private readonly byObject = new Map<ObjectId, EntryRecord[]>();
	private readonly attrs = new Map<ObjectId, AttrsRecord[]>();
	private readonly data = new Map<ObjectId, DataRecord[]>();
	private readonly keysOf = new Map<ObjectId, EntryKey[]>();
	private readonly entryPosts = new Map<EntryKey, SpanPost[]>();
	private readonly objectPosts = new Map<ObjectId, SpanPost[]>();

	/**
	 * @param records in journal order, from the first selected touch on
	 * @param posts `e/<dir>/<name>` and `o/<object>` → its post-states, oldest first
	 */
	constructor(records: readonly IndexRecord[], posts: ReadonlyMap<string, readonly SpanPost[]>) {
		this.records = records;
		for (const record of records) {
			if (record.type === "entry") {
				append(this.entries, entryKey(record.dir, record.name), record);
				if (record.object !== null) {
					append(this.byObject, record.object, record);
					append(this.keysOf, record.object, entryKey(record.dir, record.name));
				}
			} else if (record.type === "attrs") {
				append(this.attrs, record.object, record);
			} else if (record.type === "data") {
				append(this.data, record.object, record);
			}
		}
		for (const [key, states] of posts) {
			for (const state of states) {
				if (key.startsWith("o/")) {
					append(this.objectPosts, key.slice(2), state);
				} else {
					append(this.entryPosts, key.slice(2), state);
					// An entry's post-state also says what its object had become: the only word on one that was born in the span.
					if (state.object !== null && !state.unknown) {
						append(this.objectPosts, state.object, state);
						append(this.keysOf, state.object, key.slice(2));
					}
				}
			}
		}
		for (const states of this.objectPosts.values()) {
			states.sort((a, b) => a.epoch - b.epoch);
		}
	}

	entryRecords(key: EntryKey): readonly EntryRecord[] {
		return this.entries.get(key) ?? [];
	}

	/** Touches of names that meant this object before: it was removed or renamed there, or replaced. */
	entriesOf(object: ObjectId): readonly EntryRecord[] {
		return this.byObject.get(object) ?? [];
	}

	/** Touched names that have meant this object at some time. */
	keysMeaning(object: ObjectId): readonly EntryKey[] {
		return this.keysOf.get(object) ?? [];
	}

	attrsRecords(object: ObjectId): readonly AttrsRecord[] {
		return this.attrs.get(object) ?? [];
	}

	dataRecords(object: ObjectId): readonly DataRecord[] {
		return this.data.get(object) ?? [];
	}

	/** True when a rewind or redo changed this object's attributes or bytes. */
	wasRewound(object: ObjectId): boolean {
		const isRewinds = (record: AttrsRecord | DataRecord) => record.lane >= FIRST_REWIND_LANE;
		return this.attrsRecords(object).some(isRewinds) || this.dataRecords(object).some(isRewinds);
	}

	postsOfEntry(key: EntryKey): readonly SpanPost[] {
		return this.entryPosts.get(key) ?? [];
	}

	postsOfObject(object: ObjectId): readonly SpanPost[] {
		return this.objectPosts.get(object) ?? [];
	}
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
	const values = map.get(key);
	if (values === undefined) {
		map.set(key, [value]);
	} else {
		values.push(value);
	}
}
