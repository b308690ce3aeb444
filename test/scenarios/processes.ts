/** Programs that run beside a test: a shell or a server to talk to, one that holds files, one that watches folders. */
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Starts a program in the place where the test wants it. */
export type Starter = (command: string[]) => ChildProcess;

const WAIT_MS = 20_000;

function program(name: string): string {
	return fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
}

/** Waits until `done` answers true. @throws after 20 s, with what it waited for */
export async function until(
	done: () => boolean | Promise<boolean>,
	what = "something that didn't come",
): Promise<void> {
	const end = Date.now() + WAIT_MS;
	while (!(await done())) {
		if (Date.now() > end) throw new Error(`waited ${WAIT_MS} ms for ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}

export class Process {
	#child: ChildProcess;
	#ended: Promise<void>;
	#read = 0;
	#wake: () => void = () => {};
	stdout = "";
	stderr = "";

	constructor(start: Starter, command: string[]) {
		this.#child = start(command);
		this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
			this.stdout += text;
			this.#wake();
		});
		this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
			this.stderr += text;
		});
		// A program that has gone can't be written to: `ask` says so by what it waits for.
		this.#child.stdin?.on("error", () => {});
		this.#ended = new Promise((resolve) => {
			const ended = () => {
				this.#wake();
				resolve();
			};
			this.#child.on("close", ended).on("error", ended);
		});
	}

	get pid(): number {
		return this.#child.pid ?? 0;
	}

	running(): boolean {
		return this.#child.exitCode === null && this.#child.signalCode === null;
	}

	/** Waits for text on its output that no earlier call has waited for. */
	async seen(what: RegExp): Promise<string> {
		const end = Date.now() + WAIT_MS;
		while (!what.test(this.stdout.slice(this.#read)) && this.running()) {
			const left = end - Date.now();
			if (left <= 0) throw new Error(`waited for ${what}, got ${this.stdout.slice(this.#read)} ${this.stderr}`);
			await new Promise<void>((resolve) => {
				const timer = setTimeout(resolve, left);
				this.#wake = () => {
					clearTimeout(timer);
					resolve();
				};
			});
		}
		const text = this.stdout.slice(this.#read);
		if (!what.test(text)) throw new Error(`the program ended without ${what}: ${text} ${this.stderr}`);
		this.#read = this.stdout.length;
		return text;
	}

	/** Writes a line and waits for the answer. */
	async ask(line: string, answer: RegExp): Promise<string> {
		this.#child.stdin?.write(`${line}\n`);
		return this.seen(answer);
	}

	closeInput(): void {
		this.#child.stdin?.end();
	}

	kill(signal: NodeJS.Signals): void {
		this.#child.kill(signal);
	}

	async stop(): Promise<void> {
		if (this.running()) {
			this.#child.stdin?.end();
			const timer = setTimeout(() => this.#child.kill("SIGKILL"), 300);
			await this.#ended;
			clearTimeout(timer);
		}
	}
}

/** programs/holder.py: keeps descriptors, mappings and a working directory. */
export class Holder {
	#process: Process;

	constructor(start: Starter) {
		this.#process = new Process(start, ["/usr/bin/python3", "-u", program("holder.py")]);
	}

	async #request(request: unknown[]): Promise<{ ok?: unknown; errno?: string }> {
		return JSON.parse(await this.#process.ask(JSON.stringify(request), /\n$/));
	}

	/** @throws when the call fails */
	// biome-ignore lint/suspicious/noExplicitAny: each verb answers what it likes
	async call(verb: string, ...args: unknown[]): Promise<any> {
		const reply = await this.#request([verb, ...args]);
		if (reply.errno !== undefined) throw new Error(`${verb} ${args.join(" ")}: ${reply.errno}`);
		return reply.ok;
	}

	/** The name of the errno with which a call fails, or "none". */
	async errno(verb: string, ...args: unknown[]): Promise<string> {
		return (await this.#request([verb, ...args])).errno ?? "none";
	}

	get pid(): number {
		return this.#process.pid;
	}

	stop(): Promise<void> {
		return this.#process.stop();
	}
}

export interface WatchEvent {
	folder: string;
	name: string;
	what: string;
}

/** programs/watcher.py: inotify on some folders. */
export class Watcher {
	#process: Process;
	#from = 0;

	constructor(start: Starter, folders: string[]) {
		this.#process = new Process(start, ["/usr/bin/python3", "-u", program("watcher.py"), ...folders]);
	}

	async ready(): Promise<void> {
		await this.#process.seen(/ready\n/);
	}

	get events(): WatchEvent[] {
		const lines = this.#process.stdout.slice(this.#from).split("\n").slice(0, -1);
		return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as WatchEvent);
	}

	until(done: (events: WatchEvent[]) => boolean): Promise<void> {
		return until(() => done(this.events), "events of a watcher");
	}

	/** Waits until nothing has come for a moment. */
	async settle(): Promise<void> {
		let last = -1;
		await until(async () => {
			const now = this.#process.stdout.length;
			const quiet = now === last;
			last = now;
			await new Promise((resolve) => setTimeout(resolve, 100));
			return quiet;
		});
	}

	clear(): void {
		this.#from = this.#process.stdout.length;
	}

	stop(): Promise<void> {
		this.#process.kill("SIGKILL");
		return this.#process.stop();
	}
}

/** ../property/worker.py: carries out operations and takes snapshots. */
export class Worker {
	#process: Process;

	constructor(start: Starter) {
		const path = fileURLToPath(new URL("../property/worker.py", import.meta.url));
		this.#process = new Process(start, ["/usr/bin/python3", "-u", path]);
	}

	// biome-ignore lint/suspicious/noExplicitAny: each request answers what it likes
	async request(request: Record<string, unknown>): Promise<any> {
		const reply = JSON.parse(await this.#process.ask(JSON.stringify(request), /\n$/)) as {
			ok?: unknown;
			error?: string;
		};
		if (reply.error !== undefined) throw new Error(`${JSON.stringify(request).slice(0, 200)}: ${reply.error}`);
		return reply.ok;
	}

	get pid(): number {
		return this.#process.pid;
	}

	stop(): Promise<void> {
		return this.#process.stop();
	}
}
