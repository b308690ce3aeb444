/** Trouble that nobody's call was told of: it goes to the log, and `status` shows it. */
import type { ErrorCode, TurnfsError } from "../errors.js";
import type { ProblemJson } from "./api.js";
import { logLine } from "./log-line.js";

/** Older ones are in the log. */
const MAX_SHOWN = 8;

export class Problems {
	#list: ProblemJson[] = [];

	get list(): readonly ProblemJson[] {
		return this.#list;
	}

	report(error: TurnfsError): void {
		logLine(`${error.code}: ${error.message}${error.cause instanceof Error ? `\n${error.cause.stack}` : ""}`);
		const { code, message, hint } = error;
		this.#list = [...this.#list, { code, message, hint }].slice(-MAX_SHOWN);
	}

	/** What it was about has been put right. */
	forget(code: ErrorCode): void {
		this.#list = this.#list.filter((problem) => problem.code !== code);
	}
}
