/** The processes that turns belong to: whether they live, and which of them an engine must know. */
import type { Lane, Turn } from "../store/records.js";
import type { HistoryStore } from "../store/store.js";
import { isProcessAlive } from "./process-life.js";

/** How many earlier turns an engine is told of, so that their left-over processes' changes stay theirs. */
const MAX_LANE_OWNERS = 16;

export class Owners {
	readonly #store: HistoryStore;
	/** When a turn's owner was started, as noted at the turn's begin: its pid may be somebody else's by now. */
	readonly #starts = new Map<number, string | null>();

	constructor(store: HistoryStore) {
		this.#store = store;
	}

	/** To be called before the first `isAlive` of a turn. */
	async load(turn: Turn): Promise<void> {
		if (this.#starts.has(turn.turn)) return;
		const span = await this.#store.span(turn.epochs[0] ?? 0);
		const start = span?.meta.ownerStart;
		this.#starts.set(turn.turn, typeof start === "string" ? start : null);
	}

	/** False for a turn without an owning process. */
	isAlive(turn: Turn): boolean {
		const pid = turn.owner?.pid ?? 0;
		return pid !== 0 && isProcessAlive(pid, this.#starts.get(turn.turn) ?? null);
	}

	/** Turns whose processes may still be writing: by pid while the owner lives, by token always. Newest first. */
	async laneOwners(): Promise<{ lane: Lane; pid: number; token: string }[]> {
		const owners: { lane: Lane; pid: number; token: string }[] = [];
		for await (const turn of this.#store.turns({ reverse: true })) {
			if (owners.length >= MAX_LANE_OWNERS) break;
			if (turn.owner === null) continue;
			await this.load(turn);
			const pid = this.isAlive(turn) ? turn.owner.pid : 0;
			if (pid !== 0 || turn.owner.token !== "") owners.push({ lane: turn.turn, pid, token: turn.owner.token });
		}
		return owners;
	}
}
