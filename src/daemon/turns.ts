/** Turns as a harness or `run` asks for them: begin, mark, end, and the end of turns whose owner has died. */

import type { z } from "zod";
import { TurnfsError } from "../errors.js";
import { summarizeTurn } from "../history/log.js";
import type { Turn } from "../store/records.js";
import type { TurnBeginResponse, TurnEndResponse, TurnMarkResponse, turnBeginRequestSchema } from "./api.js";
import { logLine } from "./log-line.js";
import type { ProjectDaemon } from "./project-daemon.js";

type BeginRequest = z.output<typeof turnBeginRequestSchema>;

/**
 * Begins a turn; the same session's open turn, and one whose owner is dead, ends with that.
 * @throws TURNFS_NOT_MOUNTED, TURNFS_BEHIND_MOUNT, TURNFS_TURN_OPEN
 */
export async function beginTurn(daemon: ProjectDaemon, request: BeginRequest): Promise<TurnBeginResponse> {
	const mount = daemon.requireMount();
	const behind = await daemon.refreshBehind();
	const caller = behind.find(({ pid }) => pid === request.callerPid);
	if (caller !== undefined) throw new TurnfsError("TURNFS_BEHIND_MOUNT", { ...caller });
	const open = await daemon.openTurn();
	if (open !== null && !mayReplace(daemon, open, request)) {
		throw new TurnfsError("TURNFS_TURN_OPEN", { turn: open.turn, pid: open.owner?.pid ?? 0 });
	}
	const owner =
		request.ownerPid === null && request.token === null
			? null
			: { pid: request.ownerPid ?? 0, token: request.token ?? "" };
	const { label, session } = request;
	await daemon.beginSpan({ kind: "turn", label, anchor: request.anchor ?? null, session, owner });
	const begun = await daemon.openTurn();
	if (begun === null) {
		throw new TurnfsError("TURNFS_ENGINE_REFUSED", { verb: "turn begin", reason: "the journal has no such span" });
	}
	await daemon.loadOwnerStart(begun);
	if (open !== null) await noteEnd(daemon, open.turn);
	return { turn: begun.turn, ended: open?.turn ?? null, mountpoint: mount.mountpoint, behind };
}

/** A turn that a living process of somebody else owns is not ended behind its back. */
function mayReplace(daemon: ProjectDaemon, open: Turn, request: BeginRequest): boolean {
	if (!daemon.isOwnerAlive(open)) return true;
	if (open.session !== null && open.session === request.session) return true;
	return open.owner !== null && open.owner.pid !== 0 && open.owner.pid === request.ownerPid;
}

/** @throws TURNFS_NO_OPEN_TURN */
export async function markTurn(
	daemon: ProjectDaemon,
	request: { label: string | null; anchor?: unknown },
): Promise<TurnMarkResponse> {
	const open = await daemon.openTurn();
	if (open === null) throw new TurnfsError("TURNFS_NO_OPEN_TURN");
	await daemon.beginSpan({ kind: "mark", turn: open, label: request.label, anchor: request.anchor ?? null });
	return { turn: open.turn, mark: open.epochs.length };
}

/**
 * Ends the turn (by default the open one); that it has ended already is fine.
 * @throws TURNFS_UNKNOWN_TURN
 */
export async function endTurn(daemon: ProjectDaemon, turn: number | null): Promise<TurnEndResponse> {
	const open = await daemon.openTurn();
	if (turn !== null && open?.turn !== turn) {
		await daemon.store.requireTurn(turn);
		return { turn, endedNow: false };
	}
	if (open === null) return { turn: null, endedNow: false };
	const mount = daemon.requireMount();
	await daemon.beginSpan({ kind: "between" });
	// The turn is a point to go back to, so what it kept must survive a power loss from here on.
	await mount.control.sync();
	await noteEnd(daemon, open.turn);
	return { turn: open.turn, endedNow: true };
}

/** Works out the turn's numbers while its records are still at hand. */
async function noteEnd(daemon: ProjectDaemon, turn: number): Promise<void> {
	const ended = await daemon.store.requireTurn(turn);
	const { counts } = await summarizeTurn(daemon.store, ended, []);
	logLine(`turn ${turn} ended: ${JSON.stringify(counts)}`);
}

/** Ends the open turn when the process that owns it has died. A turn without an owner ends only when told. */
export async function endOrphanedTurn(daemon: ProjectDaemon): Promise<void> {
	if (!daemon.isMounted()) return;
	const open = await daemon.openTurn();
	if (open === null || open.owner === null || open.owner.pid === 0) return;
	await daemon.loadOwnerStart(open);
	if (daemon.isOwnerAlive(open)) return;
	logLine(`the owner of turn ${open.turn} (pid ${open.owner.pid}) has died`);
	await endTurn(daemon, open.turn);
}
