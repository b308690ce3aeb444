/** Spans and turns as ingest meets their beginnings and ends in the journal. */

import { showBytes } from "../text/byte-string.js";
import { type SpanMeta, type StoredTurn, spanMetaSchema, storedTurnSchema } from "./codec.js";
import { type Operation, put } from "./index-db.js";
import type { JournalRecord } from "./journal-reader.js";
import * as keys from "./keys.js";
import type { ByteString, Span } from "./records.js";
import type { HistoryStore } from "./store.js";

export class SpanKeeper {
	#current: Span | null;
	#turn: StoredTurn | null;
	readonly #changed = new Map<string, Span | StoredTurn>();

	private constructor(current: Span | null, turn: StoredTurn | null) {
		this.#current = current;
		this.#turn = turn;
	}

	static async load(store: HistoryStore): Promise<SpanKeeper> {
		const current = await store.lastSpan();
		const turn =
			current === null || current.turn === null
				? null
				: await store.db.get(keys.turnKey(current.turn), storedTurnSchema);
		return new SpanKeeper(current, turn);
	}

	/** The newest span; it may have ended. */
	get current(): Span | null {
		return this.#current;
	}

	begin(record: JournalRecord & { type: "span" }): void {
		const meta = readMeta(record.meta);
		const inTurn = record.kind === "turn" || record.kind === "mark";
		const turn = inTurn ? (meta.turn ?? record.lane) : null;
		this.close(record.timeNs, turn);
		this.#current = {
			epoch: record.epoch,
			kind: record.kind,
			lane: record.lane,
			turn,
			mark: meta.mark,
			label: meta.label,
			anchor: meta.anchor ?? null,
			session: meta.session,
			beginNs: record.timeNs,
			endNs: null,
			firstSeq: record.seq,
			meta: meta.extra,
		};
		this.#changed.set(keys.spanKey(record.epoch), this.#current);
		if (turn === null) return;
		if (this.#turn?.turn === turn) {
			this.#turn = { ...this.#turn, epochs: [...this.#turn.epochs, record.epoch] };
		} else {
			this.#turn = {
				turn,
				label: meta.label,
				anchor: meta.anchor ?? null,
				session: meta.session,
				beginNs: record.timeNs,
				endNs: null,
				epochs: [record.epoch],
				firstSeq: record.seq,
				owner: meta.owner,
				pinned: false,
				rewoundBy: null,
				behind: meta.behind,
			};
		}
		this.#changed.set(keys.turnKey(turn), this.#turn);
	}

	/** Ends the current span, and its turn unless `nextTurn` goes on with it. */
	close(timeNs: bigint, nextTurn: number | null = null): void {
		if (this.#current === null || this.#current.endNs !== null) return;
		this.#current = { ...this.#current, endNs: timeNs };
		this.#changed.set(keys.spanKey(this.#current.epoch), this.#current);
		if (this.#turn === null || this.#turn.turn === nextTurn) return;
		if (this.#turn.endNs === null) this.#changed.set(keys.turnKey(this.#turn.turn), { ...this.#turn, endNs: timeNs });
		this.#turn = null;
	}

	operations(): Operation[] {
		return [...this.#changed].map(([key, value]) => put(key, value));
	}
}

/** The daemon's own JSON come back. The engine does not read it; a journal of another version may have more in it. */
function readMeta(bytes: ByteString): SpanMeta {
	try {
		return spanMetaSchema.parse(bytes.length === 0 ? {} : JSON.parse(showBytes(bytes)));
	} catch {
		// The checksum was right, so this is what was given: a span without facts still bounds its records.
		return spanMetaSchema.parse({});
	}
}
