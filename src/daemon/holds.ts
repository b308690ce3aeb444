/** Who keeps the mount: every `run` and every mount in the foreground has a connection open as long as it lives. */
import { processComm } from "./process-life.js";

export interface HoldEntry {
	token: string;
	pid: number;
	turn: number | null;
	/** It mounted, so the mount goes with the last hold. */
	unmount: boolean;
}

export class Holds {
	readonly #entries = new Set<HoldEntry>();

	add(entry: HoldEntry): void {
		this.#entries.add(entry);
	}

	delete(entry: HoldEntry): void {
		this.#entries.delete(entry);
	}

	get size(): number {
		return this.#entries.size;
	}

	holdsTurn(turn: number): boolean {
		return [...this.#entries].some((entry) => entry.turn === turn);
	}

	/** Whoever held one turn holds another from now on. */
	moveTurn(from: number, to: number): void {
		for (const entry of this.#entries) if (entry.turn === from) entry.turn = to;
	}

	/** @param token whose own hold doesn't count */
	list(token?: string): { pid: number; comm: string }[] {
		return [...this.#entries]
			.filter((entry) => entry.token !== token)
			.map(({ pid }) => ({ pid, comm: processComm(pid) }));
	}
}

/** `pid 12 (bash), pid 13 (vim)` */
export function describeProcesses(processes: { pid: number; comm: string }[]): string {
	return processes.map(({ pid, comm }) => `pid ${pid}${comm === "" ? "" : ` (${comm})`}`).join(", ");
}
