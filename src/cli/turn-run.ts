/**
 * `run` and `shell`: a program's whole life as one turn. Mounts if needed, begins the turn, starts the program inside the mount,
 * ends the turn when it (or we) are gone, says what changed, unmounts what it mounted.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { ancestors } from "../project/ancestors.js";
import { type ChildEnd, runChild } from "./child.js";
import { type Mounted, type MountOptions, mountProject, warnBehind } from "./connect.js";
import { PROJECT_VARIABLE, surroundingTurn, TOKEN_VARIABLE, TURN_VARIABLE } from "./inside-turn.js";
import { remark } from "./output.js";
import { renderRunSummary } from "./render/run-summary.js";
import { reportError } from "./report-error.js";
import { unmountOrLeave } from "./unmounting.js";

export interface TurnRun {
	/** Program and arguments. */
	command: string[];
	label: string | null;
	anchor: unknown;
	mount: Omit<MountOptions, "ifNeeded" | "at">;
	/** `-C` as it was given, for the commands that we suggest. */
	folderOption: string | undefined;
	/** Told once the turn is open. */
	onBegin?: (turn: number) => void;
}

/** @returns the program's status; 128+n for a signal, 126 or 127 when it could not be started */
export async function runTurn(dir: string, run: TurnRun): Promise<number> {
	const mounted = await mountProject(dir, { ...run.mount, ifNeeded: true });
	const { place, client, mount } = mounted;
	const cwd = join(mount.mountpoint, place.below);
	try {
		// Inside its own turn it is a part of it.
		if ((await surroundingTurn(client, place.project)) !== null)
			return report(await runChild(run.command, cwd, process.env));
		return await runOwnTurn(mounted, run, cwd);
	} finally {
		await client.close();
	}
}

async function runOwnTurn({ place, client, mount }: Mounted, run: TurnRun, cwd: string): Promise<number> {
	const token = randomBytes(16).toString("hex");
	const begin = { label: run.label, anchor: run.anchor, ownerPid: process.pid, token };
	const begun = await client.turnBegin(begin).catch(async (error: unknown) => {
		// Nothing ran yet. What we mounted for it goes again; if even that fails, the first error is the one to tell.
		if (mount.mountedNow) await client.umount({}).catch(() => {});
		throw error;
	});
	const { turn } = begun;
	const hold = await client.hold({
		token,
		pid: process.pid,
		turn,
		keeper: mount.pids.keeper,
		unmount: mount.mountedNow,
	});
	// Our own ancestors wait for us, and the mount goes when we do.
	const waiting = mount.mountedNow ? ancestors(process.pid) : [];
	warnBehind(begun.behind.filter((p) => !waiting.includes(p.pid)));
	run.onBegin?.(turn);
	const env = {
		...process.env,
		[TOKEN_VARIABLE]: token,
		[TURN_VARIABLE]: String(turn),
		[PROJECT_VARIABLE]: place.project,
	};
	const status = report(await runChild(run.command, cwd, env));
	// The program has run: its status is ours, whatever happens to us from here on.
	await attempt(async () => void (await client.turnEnd({ turn })));
	await attempt(async () => remark(renderRunSummary(await client.show(turn), run.folderOption)));
	if (mount.mountedNow) await attempt(async () => void (await unmountOrLeave(client, mount, token)));
	await hold.close();
	return status;
}

/** A step whose failure is told and keeps the later ones from nothing. */
async function attempt(step: () => Promise<void>): Promise<void> {
	try {
		await step();
	} catch (error) {
		reportError(error);
	}
}

function report(end: ChildEnd): number {
	if (end.failure !== null) reportError(end.failure);
	return end.status;
}
