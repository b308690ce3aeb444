/** What the engine is told at a span's beginning; its `meta` comes back through the journal (`store/span-keeper.ts`). */
import type { SpanRequest } from "../engine/control.js";
import type { SpanMeta } from "../store/codec.js";
import type { Turn } from "../store/records.js";
import { REWIND_LANE } from "../store/store.js";
import type { BehindJson } from "./api.js";
import { processStart } from "./process-life.js";
import type { NextSpan } from "./project-context.js";

export interface SpanFacts {
	/** The epoch that the span will have, and the number, if it is a turn. */
	epoch: number;
	turn: number;
	/** Whose changes a rewind's are. */
	rewinder: number;
	/** Who stands behind the mount. */
	behind: BehindJson[];
}

export function spanRequest(next: NextSpan, facts: SpanFacts): SpanRequest {
	switch (next.kind) {
		case "between":
			return { kind: "between", lane: 0, meta: {} };
		case "rewind":
		case "redo": {
			const meta: Partial<SpanMeta> = { extra: next.meta };
			return { kind: next.kind, lane: REWIND_LANE + facts.epoch, ownerPid: facts.rewinder, meta };
		}
		case "turn": {
			const { label, anchor, session, owner } = next;
			const extra = { ownerStart: owner === null ? null : processStart(owner.pid) };
			const meta: Partial<SpanMeta> = { turn: facts.turn, label, anchor, session, owner, behind: facts.behind, extra };
			return { kind: "turn", lane: facts.turn, ...ownerFields(owner), meta };
		}
		case "mark": {
			const { turn, label, anchor } = next;
			const { session, owner } = turn;
			const meta: Partial<SpanMeta> = { turn: turn.turn, mark: turn.epochs.length, label, anchor, session, owner };
			return { kind: "mark", lane: turn.turn, ...ownerFields(owner), meta };
		}
	}
}

function ownerFields(owner: Turn["owner"]): Pick<SpanRequest, "ownerPid" | "token"> {
	if (owner === null) return {};
	return {
		ownerPid: owner.pid === 0 ? undefined : owner.pid,
		token: owner.token === "" ? undefined : owner.token,
	};
}
