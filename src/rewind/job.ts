/** What a rewind or a redo is about: whose touches it undoes, and the stretch of history that has them. */
import { TurnfsError } from "../errors.js";
import { postKeyText } from "../store/keys.js";
import type { IndexRecord, Lane, Turn } from "../store/records.js";
import type { HistoryStore, RewindEntry } from "../store/store.js";
import { History } from "./history.js";
import { FIRST_REWIND_LANE, type Selection, type SpanPost } from "./types.js";

export interface Job {
	kind: "rewind" | "redo";
	/** The turn gone back to; for a redo the earliest one done again. */
	turn: Turn;
	/** Every turn that is undone, or done again. */
	turns: number[];
	selection: Selection;
	/** Where the first selected touch can be, as journal position and as epoch. */
	fromSeq: bigint;
	fromEpoch: number;
	/** Redo only: the rewind that it undoes. */
	undoes: RewindEntry | null;
}

/** What a rewind's journal entry says beyond the index's own fields. */
export interface RewindDetails {
	/** Of every span in which it was worked on: more than one after an interruption. */
	epochs: number[];
	exact: boolean;
	/** Redo: the epoch of the rewind that it undoes. */
	undoes: number | null;
	/** The turn that was begun again after it, because its owner went on; a redo is still possible in it. */
	resumedTurn: number | null;
}

export function detailsOf(entry: RewindEntry): RewindDetails {
	const given = (entry.details ?? {}) as Partial<RewindDetails>;
	return {
		epochs: given.epochs ?? [entry.epoch],
		exact: given.exact ?? false,
		undoes: given.undoes ?? null,
		resumedTurn: given.resumedTurn ?? null,
	};
}

/** @throws TURNFS_UNKNOWN_TURN, TURNFS_TURN_REWOUND */
export async function rewindJob(store: HistoryStore, spec: number | "last", exact: boolean): Promise<Job> {
	const turn = spec === "last" ? await store.lastTurn() : await store.requireTurn(spec);
	if (turn === null) {
		throw new TurnfsError("TURNFS_UNKNOWN_TURN", { turn: "to go back to" });
	}
	if (turn.state === "rewound") {
		throw new TurnfsError("TURNFS_TURN_REWOUND", { turn: turn.turn });
	}
	const lanes = new Map<Lane, bigint>();
	const ignored = new Set<Lane>();
	const turns: number[] = [];
	for await (const each of store.turns()) {
		if (each.state === "rewound") {
			ignored.add(each.turn);
			if (each.turn > turn.turn) {
				// What its left-over processes did after it was rewound is still there, and goes too.
				lanes.set(each.turn, await lastSeqOfRewind(store, each.rewoundBy));
			}
		} else if (each.turn >= turn.turn) {
			lanes.set(each.turn, 0n);
			turns.push(each.turn);
		}
	}
	return {
		kind: "rewind",
		turn,
		turns,
		selection: { lanes, ignored, everybody: exact },
		fromSeq: turn.firstSeq,
		fromEpoch: turn.epochs[0] ?? 0,
		undoes: null,
	};
}

/** @throws TURNFS_NOTHING_TO_REDO */
export async function redoJob(store: HistoryStore): Promise<Job> {
	const entry = await newestUndoable(store);
	if (entry === null) {
		throw new TurnfsError("TURNFS_NOTHING_TO_REDO");
	}
	return redoJobOf(store, entry);
}

export async function redoJobOf(store: HistoryStore, entry: RewindEntry): Promise<Job> {
	const { epochs } = detailsOf(entry);
	const first = Math.min(...epochs);
	const span = await store.span(first);
	if (span === null) {
		throw new TurnfsError("TURNFS_NOTHING_TO_REDO");
	}
	const ignored = new Set<Lane>();
	for await (const turn of store.turns()) {
		if (turn.state === "rewound") {
			ignored.add(turn.turn);
		}
	}
	return {
		kind: "redo",
		turn: await store.requireTurn(entry.turn),
		turns: entry.turns,
		selection: { lanes: new Map(epochs.map((epoch) => [laneOf(epoch), 0n])), ignored, everybody: false },
		fromSeq: span.firstSeq,
		fromEpoch: first,
		undoes: entry,
	};
}

/** An interrupted one goes on: what its first attempts touched is undone along with the rest of its selection. */
export function addOwnLanes(job: Job, epochs: readonly number[]): Job {
	const lanes = new Map(job.selection.lanes);
	for (const epoch of epochs) {
		lanes.set(laneOf(epoch), 0n);
	}
	return { ...job, selection: { ...job.selection, lanes } };
}

export async function loadHistory(store: HistoryStore, job: Job): Promise<History> {
	const records: IndexRecord[] = [];
	for await (const record of store.records(job.fromSeq)) {
		records.push(record);
	}
	const posts = new Map<string, SpanPost[]>();
	for await (const span of store.spans()) {
		if (span.epoch < job.fromEpoch) {
			continue;
		}
		for await (const [key, state] of store.postStates(span.epoch)) {
			const text = postKeyText(key);
			const states = posts.get(text) ?? [];
			states.push({ ...state, epoch: span.epoch });
			posts.set(text, states);
		}
	}
	return new History(records, posts);
}

/** The newest rewind that was not undone, as long as no turn has begun since (but the one it interrupted and began again). */
async function newestUndoable(store: HistoryStore): Promise<RewindEntry | null> {
	for await (const entry of store.rewinds()) {
		if (entry.kind !== "rewind" || entry.state !== "done" || entry.undoneBy !== null) {
			continue;
		}
		const { epochs, resumedTurn } = detailsOf(entry);
		const last = Math.max(...epochs);
		for await (const turn of store.turns({ reverse: true })) {
			if ((turn.epochs[0] ?? 0) <= last) {
				break;
			}
			if (turn.turn !== resumedTurn) {
				return null;
			}
		}
		return entry;
	}
	return null;
}

async function lastSeqOfRewind(store: HistoryStore, epoch: number | null): Promise<bigint> {
	if (epoch === null) {
		return 0n;
	}
	const entry = await store.rewind(epoch);
	const last = entry === null ? epoch : Math.max(...detailsOf(entry).epochs);
	const next = await store.span(last + 1);
	// Without a next span it is still going on, and so is everything after it.
	return next === null ? (await store.meta()).lastSeq : next.firstSeq - 1n;
}

function laneOf(epoch: number): Lane {
	return FIRST_REWIND_LANE + epoch;
}
