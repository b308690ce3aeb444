/** The process that aborts FUSE connections of tests that take too long; see watchdog.py. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("watchdog.py", import.meta.url));

export class Watchdog {
	readonly #child: ChildProcess;
	readonly #said: string[] = [];

	/** @param base the folder below which everything of this test file is mounted */
	constructor(base: string) {
		this.#child = spawn("/usr/bin/python3", ["-I", script, base], {
			cwd: "/",
			stdio: ["pipe", "pipe", "inherit"],
			detached: true,
		});
		this.#child.stdout?.on("data", (chunk: Buffer) => this.#said.push(...chunk.toString().trim().split("\n")));
		this.#child.unref();
		(this.#child.stdin as unknown as { unref?(): void }).unref?.();
		(this.#child.stdout as unknown as { unref?(): void }).unref?.();
	}

	/** After `seconds` every FUSE mount below `dir` is aborted, unless disarmed before. */
	arm(id: string, seconds: number, dir: string): void {
		this.#child.stdin?.write(`arm ${id} ${seconds} ${dir}\n`);
	}

	disarm(id: string): void {
		this.#child.stdin?.write(`disarm ${id}\n`);
	}

	/** Which mounts it had to abort below `dir`. */
	aborted(dir: string): string[] {
		return this.#said.filter((line) => line.includes(` ${dir}/`));
	}

	/** It clears away what is left below its base, and ends. */
	async close(): Promise<void> {
		const ended = new Promise<void>((resolve) => this.#child.once("close", () => resolve()));
		this.#child.ref();
		this.#child.stdin?.end();
		await ended;
	}
}
