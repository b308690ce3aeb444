/**
 * The program that `run` and `shell` start. It shares our process group and terminal, so the terminal's signals (Ctrl-C, Ctrl-\,
 * Ctrl-Z) reach it by themselves and the caller's shell sees the two of us as one job. We only must not die before it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { lstatSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { isatty } from "node:tty";
import { TurnfsError } from "../errors.js";

export interface ChildEnd {
	/** For our own exit: the child's status, 128+n for a signal, 126 not executable, 127 not found. */
	status: number;
	/** Why it could not be started, or null. */
	failure: TurnfsError | null;
}

/** From the terminal: the child has them already. */
const LEFT_TO_THE_CHILD: NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
/** Sent to us alone: the child is who they are meant for. */
const FORWARDED: NodeJS.Signals[] = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];

const STOP_POLL_MS = 250;

/** State letter and process group of a process: `T` is stopped by a signal. */
function processState(pid: number): { state: string; group: number } | null {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
		const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
		return state === undefined ? null : { state, group: Number(group) };
	} catch {
		return null; // It has just ended.
	}
}

/**
 * When the child alone was stopped (`suspend` in a shell, kill -TSTP), we stop too, so that the caller's shell takes the terminal
 * back; when somebody continues us, the child goes on. Node has no waitpid(WUNTRACED), so its state is looked at.
 */
function stopWithChild(child: ChildProcess): () => void {
	const pid = child.pid;
	if (pid === undefined || !isatty(0)) return () => {};
	const timer = setInterval(() => {
		if (processState(pid)?.state !== "T") return;
		process.kill(process.pid, "SIGSTOP");
		process.kill(pid, "SIGCONT");
	}, STOP_POLL_MS);
	timer.unref();
	return () => clearInterval(timer);
}

function startFailure(command: string, cwd: string, error: NodeJS.ErrnoException): ChildEnd {
	let folderThere = true;
	try {
		folderThere = lstatSync(cwd).isDirectory();
	} catch {
		folderThere = false;
	}
	// spawn says ENOENT for a missing working directory too.
	if (!folderThere)
		return {
			status: 125,
			failure: new TurnfsError("TURNFS_NO_SUCH_FOLDER", { path: cwd, reason: "it has gone" }, error),
		};
	const failure =
		error.code === "ENOENT"
			? new TurnfsError("TURNFS_COMMAND_NOT_FOUND", { command }, error)
			: new TurnfsError("TURNFS_COMMAND_NOT_EXECUTABLE", { command, reason: error.code ?? error.message }, error);
	return { status: failure.exitStatus, failure };
}

/**
 * Runs a program to its end with our stdin, stdout and stderr.
 * @param cwd a path *inside* the mount
 * @param onStart is told the child's pid
 */
export function runChild(
	command: string[],
	cwd: string,
	env: NodeJS.ProcessEnv,
	onStart: (pid: number) => void = () => {},
): Promise<ChildEnd> {
	const [program, ...args] = command;
	if (program === undefined) throw new TypeError("runChild: no command");
	return new Promise((resolve) => {
		const ignore = () => {};
		for (const signal of LEFT_TO_THE_CHILD) process.on(signal, ignore);
		const child = spawn(program, args, { cwd, env: { ...env, PWD: cwd }, stdio: "inherit" });
		const forwards = FORWARDED.map((signal) => {
			const forward = () => void child.kill(signal);
			process.on(signal, forward);
			return [signal, forward] as const;
		});
		const unwatch = stopWithChild(child);
		const finish = (end: ChildEnd) => {
			unwatch();
			// Ctrl-C stays ignored: what follows (ending the turn, unmounting) must not be cut short by an impatient second one.
			for (const [signal, forward] of forwards) process.off(signal, forward);
			resolve(end);
		};
		child.once("spawn", () => onStart(child.pid ?? 0));
		child.once("error", (error: NodeJS.ErrnoException) => finish(startFailure(program, cwd, error)));
		child.once("exit", (code, signal) =>
			finish({ status: signal === null ? (code ?? 1) : 128 + constants.signals[signal], failure: null }),
		);
	});
}
