/** Runs programs for tests: with a time limit, in a process group of their own, and as any user. */
import { type ChildProcess, spawn } from "node:child_process";

export interface UserIds {
	uid: number;
	gid: number;
}

export interface CommandOptions {
	cwd?: string | undefined;
	env?: NodeJS.ProcessEnv | undefined;
	as?: UserIds | undefined;
	/** Written to standard input, which is closed after it. */
	input?: string | Buffer | undefined;
	/** Any other exit status is an error; null: every status is fine. Default 0. */
	expectStatus?: number | null | undefined;
	/** The process group is killed after this time. Default 60 s. */
	timeoutMs?: number | undefined;
}

export interface CommandResult {
	/** 128 + n when a signal ended it. */
	status: number;
	/** latin1 would lose nothing, but tests read text: UTF-8. */
	stdout: string;
	stderr: string;
}

/** What tests and everything they start see: a short, fixed environment. */
export function plainEnvironment(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
	const kept = ["TURNFS_ENGINE", "TURNFS_TRACE", "TURNFS_FAULT", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"];
	const env: NodeJS.ProcessEnv = {
		PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		LC_ALL: "C.UTF-8",
		TZ: "UTC",
		HOME: "/nonexistent",
	};
	for (const name of kept) if (process.env[name] !== undefined) env[name] = process.env[name];
	return { ...env, ...extra };
}

/** Starts a program without waiting; the caller ends it. It leads a process group of its own. */
export function startCommand(command: string[], options: CommandOptions = {}): ChildProcess {
	// The shell changes the directory after the change of user: a mount of an ordinary user is closed to root.
	const wrapper = ["-c", 'umask 022; cd -- "$0" && exec "$@"', options.cwd ?? "/", ...command];
	return spawn("/bin/sh", wrapper, {
		cwd: "/",
		env: options.env ?? plainEnvironment(),
		stdio: ["pipe", "pipe", "pipe"],
		detached: true,
		...(options.as ? { uid: options.as.uid, gid: options.as.gid } : {}),
	});
}

/** @throws when the status is not the expected one or the time is over; the message has the end of both outputs. */
export async function runCommand(command: string[], options: CommandOptions = {}): Promise<CommandResult> {
	const child = startCommand(command, options);
	const stdout: Buffer[] = [];
	const stderr: Buffer[] = [];
	child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
	child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
	// A program that exits without reading its input is no error.
	child.stdin?.on("error", () => {});
	child.stdin?.end(options.input ?? "");
	const timeoutMs = options.timeoutMs ?? 60_000;
	let timedOut = false;
	const timer = setTimeout(() => {
		timedOut = true;
		killGroup(child.pid, "SIGKILL");
		// A child in uninterruptible sleep, or a grandchild that kept the pipes, must not keep us.
		setTimeout(() => child.emit("close", null, "SIGKILL"), 2_000).unref();
	}, timeoutMs);
	const status = await new Promise<number>((resolve, reject) => {
		child.once("error", reject);
		child.once("close", (code, signal) => resolve(code ?? 128 + signalNumber(signal)));
	}).finally(() => clearTimeout(timer));
	const result = { status, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
	if (timedOut) throw new Error(describeRun(command, result, `was killed after ${timeoutMs} ms`));
	const expected = options.expectStatus === undefined ? 0 : options.expectStatus;
	if (expected !== null && status !== expected) {
		throw new Error(describeRun(command, result, `ended with status ${status}, not ${expected}`));
	}
	return result;
}

export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
	if (pid === undefined) return;
	try {
		process.kill(-pid, signal);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
	}
}

function signalNumber(signal: NodeJS.Signals | null): number {
	const numbers: Partial<Record<NodeJS.Signals, number>> = {
		SIGHUP: 1,
		SIGINT: 2,
		SIGABRT: 6,
		SIGKILL: 9,
		SIGSEGV: 11,
		SIGPIPE: 13,
		SIGTERM: 15,
	};
	return (signal && numbers[signal]) ?? 0;
}

function describeRun(command: string[], result: CommandResult, what: string): string {
	const tail = (text: string) => (text.length > 4_000 ? `…${text.slice(-4_000)}` : text);
	return `${command.join(" ").slice(0, 600)}\n${what}\n--- stdout\n${tail(result.stdout)}\n--- stderr\n${tail(result.stderr)}`;
}
