/** One at a time, in order of arrival: mounts, turns, rewinds and ingest never overlap. */
export class Serial {
	#last: Promise<unknown> = Promise.resolve();
	#waiting = 0;

	run<T>(work: () => Promise<T>): Promise<T> {
		this.#waiting++;
		const result = this.#last.then(work).finally(() => {
			this.#waiting--;
		});
		// The next one starts however this one ends; its error goes to whoever asked for it.
		this.#last = result.catch(() => {});
		return result;
	}

	/** True while something runs or waits. */
	get busy(): boolean {
		return this.#waiting > 0;
	}
}
