/**
 * What a rewind needs of the daemon. While a route that has it runs, nothing else ingests or moves the epoch: the daemon hands
 * it out under its project lock.
 */
import type { Position, SpanRequest } from "../engine/control.js";
import type { Fsop } from "../engine/fsop.js";
import type { ByteString, Turn } from "../store/records.js";
import type { HistoryStore } from "../store/store.js";

/** Roots of the daemon's fsop child. */
export const roots = {
	/** The project folder under any mount; always open. Changes through it are not captured: only look. */
	project: "project",
	/** The store's folder, not through the mount; always open. */
	storePlain: "store-plain",
	/** The mounted project; inside `withMount` only. */
	mount: "mount",
	/** The store as seen through the mount's door; inside `withMount` only. */
	store: "store",
} as const;

export interface ActiveMount {
	mountpoint: ByteString;
	/** True: mounted for this call only, at a place nobody knows. */
	temporary: boolean;
}

/** A span to begin; lane and mark numbers of rewinds are worked out by the daemon. */
export type NextSpan =
	| { kind: "between" }
	| { kind: "rewind" | "redo"; meta: Record<string, unknown> }
	| {
			kind: "turn";
			label: string | null;
			anchor: unknown;
			session: string | null;
			owner: Turn["owner"];
	  }
	| { kind: "mark"; turn: Turn; label: string | null; anchor: unknown };

export interface ProjectContext {
	/** The project's real path, for messages. */
	readonly project: string;
	readonly store: HistoryStore;
	/** With the roots above. Its process is the owner of a rewind's span. */
	readonly fsop: Fsop;

	/** True when the project is mounted (a temporary mount counts while it lasts). */
	isMounted(): boolean;
	/** The open turn, or null. */
	openTurn(): Promise<Turn | null>;
	/** True when the process that owns the turn (or holds it, as `run`) lives. */
	isOwnerAlive(turn: Turn): boolean;

	/**
	 * Runs `work` with the project mounted, roots `mount` and `store` open. When it isn't mounted an engine is started at a
	 * private place, and unmounted afterwards; its first span is a between.
	 */
	withMount<T>(work: (mount: ActiveMount) => Promise<T>): Promise<T>;

	/**
	 * Ends the current span and begins another: flush of mapped pages, advance, seal, ingest to the end, post-states of the span
	 * that ended. Inside `withMount`, or while mounted.
	 */
	beginSpan(next: NextSpan): Promise<Position>;

	/** Seals the journal and ingests it to its end; returns the last position. While not mounted: what there is. */
	ingestAll(): Promise<bigint>;

	/** A line in the daemon's log. */
	note(message: string): void;
}

export type { Position, SpanRequest };
