/** Who keeps the mount: every `run` and every mount in the foreground has a connection open as long as it lives. */
import { processComm } from "./process-life.js";

export interface HoldEntry {
	token: string;
	pid: number;
	turn: number | null;
	/** The mount that it holds, by its keeper's pid: a later mount of the same project is none of its business. */
	keeper: number | null;
	/** It mounted, so that mount goes with its last hold. */
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

	/** Whether anybody holds that mount. */
	holdsMount(keeper: number): boolean {
		return [...this.#entries].some((entry) => entry.keeper === keeper);
	}

	holdsTurn(turn: number): boolean {
		return [...this.#entries].some((entry) => entry.turn === turn);
	}

	/** Whoever held one turn holds another from now on. */
	moveTurn(from: number, to: number): void {
		for (const entry of this.#entries) if (entry.turn === from) entry.turn = to;
	}

	/**
	 * Who holds a mount.
	 * @param token whose own hold doesn't count
	 */
	list(keeper: number, token?: string): { pid: number; comm: string }[] {
		return [...this.#entries]
			.filter((entry) => entry.keeper === keeper && entry.token !== token)
			.map(({ pid }) => ({ pid, comm: processComm(pid) }));
	}
}

/** `pid 12 (bash), pid 13 (vim)` */
export function describeProcesses(processes: { pid: number; comm: string }[]): string {
	return processes.map(({ pid, comm }) => `pid ${pid}${comm === "" ? "" : ` (${comm})`}`).join(", ");
}
