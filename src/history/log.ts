/** The list of turns, newest first; on demand with what lies between them. */
import type { LogEntry } from "../daemon/api.js";
import type { PostState, Span, Turn } from "../store/records.js";
import { type HistoryStore, type PostKey, REWIND_LANE, type TurnSummary } from "../store/store.js";
import { toIsoTime } from "../text/time.js";
import { listChanges, summarize, turnStretch } from "./changes.js";

export interface LogRequest {
	/** How many entries at most. */
	n?: number | undefined;
	/** Rewound turns too, and rewinds, betweens in which something changed, and gaps. */
	all: boolean;
	/** Present states of what the newest span, which is not over, has touched. */
	live: [PostKey, PostState][];
}

export async function listLog(store: HistoryStore, request: LogRequest): Promise<LogEntry[]> {
	const entries: LogEntry[] = [];
	const limit = request.n ?? Number.POSITIVE_INFINITY;
	const source = request.all ? everything(store, request.live) : liveTurns(store, request.live);
	for await (const entry of source) {
		if (entries.length >= limit) break;
		entries.push(entry);
	}
	return entries;
}

async function* liveTurns(store: HistoryStore, live: LogRequest["live"]): AsyncGenerator<LogEntry> {
	for await (const turn of store.turns({ reverse: true })) {
		if (turn.state !== "rewound") yield await turnEntry(store, turn, live);
	}
}

async function* everything(store: HistoryStore, live: LogRequest["live"]): AsyncGenerator<LogEntry> {
	let later: Span | null = null;
	const told = new Set<number>();
	for await (const span of store.spans({ reverse: true })) {
		// Spans of one mount follow each other without a moment between them.
		if (later !== null && span.endNs !== null && span.endNs < later.beginNs) yield gapEntry(span.endNs, later.beginNs);
		if (span.turn !== null) {
			const turn = told.has(span.turn) ? null : await store.turn(span.turn);
			told.add(span.turn);
			if (turn !== null) yield await turnEntry(store, turn, live);
		} else {
			const entry = await spanEntry(store, span, later, live);
			if (entry !== null) yield entry;
		}
		later = span;
	}
}

/** A turn's numbers: worked out once when it has ended, each time while it is open. */
export async function summarizeTurn(store: HistoryStore, turn: Turn, live: LogRequest["live"]): Promise<TurnSummary> {
	if (turn.state === "open") return summarize(await listChanges(store, turnStretch(turn), live));
	const known = await store.summary(turn.turn);
	if (known !== null) return known;
	const summary = summarize(await listChanges(store, turnStretch(turn)));
	await store.putSummary(turn.turn, summary);
	return summary;
}

async function turnEntry(store: HistoryStore, turn: Turn, live: LogRequest["live"]): Promise<LogEntry> {
	return {
		turn: turn.turn,
		label: turn.label,
		anchor: turn.anchor ?? null,
		session: turn.session,
		spanKind: "turn",
		begin: toIsoTime(turn.beginNs),
		end: turn.endNs === null ? null : toIsoTime(turn.endNs),
		state: turn.state,
		pinned: turn.pinned,
		...(await summarizeTurn(store, turn, live)),
	};
}

/** null for a between in which nothing happened. */
async function spanEntry(
	store: HistoryStore,
	span: Span,
	later: Span | null,
	live: LogRequest["live"],
): Promise<LogEntry | null> {
	if (span.kind === "turn" || span.kind === "mark") return null;
	const lane = span.kind === "between" ? 0 : REWIND_LANE + span.epoch;
	const stretch = { lane, epochs: [span.epoch], turn: null };
	const summary = summarize(await listChanges(store, stretch, later === null ? live : []));
	const { added, modified, deleted, renamed } = summary.counts;
	if (span.kind === "between" && added + modified + deleted + renamed + summary.skipped === 0) return null;
	return {
		turn: null,
		label: span.label,
		anchor: span.anchor ?? null,
		session: span.session,
		spanKind: span.kind,
		begin: toIsoTime(span.beginNs),
		end: span.endNs === null ? null : toIsoTime(span.endNs),
		state: span.endNs === null ? "open" : "ended",
		pinned: false,
		...summary,
	};
}

function gapEntry(beginNs: bigint, endNs: bigint): LogEntry {
	return {
		turn: null,
		label: null,
		anchor: null,
		session: null,
		spanKind: "gap",
		begin: toIsoTime(beginNs),
		end: toIsoTime(endNs),
		state: "ended",
		pinned: false,
		counts: { added: 0, modified: 0, deleted: 0, renamed: 0 },
		bytes: 0,
		skipped: 0,
	};
}
