/**
 * Going back, and forward again. The daemon calls `rewindProject` and `redoProject` under its project lock, and
 * `resumeRewinds` when it starts.
 */
import type { RedoOptions, RewindOptions, RewindResponse } from "../daemon/api.js";
import type { NextSpan, ProjectContext } from "../daemon/project-context.js";
import type { Turn } from "../store/records.js";
import { pathToJson } from "../text/byte-string.js";
import { nowNs } from "../text/time.js";
import { applySteps } from "./apply.js";
import { type Job, type RewindDetails, redoJob, rewindJob } from "./job.js";
import { Planning } from "./planning.js";
import type { PathReason } from "./types.js";
import { verifySources } from "./verify.js";

/**
 * Gives the project back as it was when a turn began. With conflicts and neither `overwrite` nor `exact` nothing is changed:
 * `applied` is false and `conflicts` lists them.
 * @throws TURNFS_UNKNOWN_TURN, TURNFS_TURN_REWOUND, TURNFS_STORE_DAMAGED
 */
export async function rewindProject(context: ProjectContext, options: RewindOptions): Promise<RewindResponse> {
	const find = () => rewindJob(context.store, options.turn, options.exact);
	return perform(context, find, {
		dryRun: options.dryRun,
		overwrite: options.overwrite || options.exact,
		exact: options.exact,
	});
}

/**
 * Undoes the newest rewind.
 * @throws TURNFS_NOTHING_TO_REDO, TURNFS_STORE_DAMAGED
 */
export async function redoProject(context: ProjectContext, options: RedoOptions): Promise<RewindResponse> {
	return perform(context, () => redoJob(context.store), { ...options, exact: false });
}

interface Choices {
	dryRun: boolean;
	overwrite: boolean;
	exact: boolean;
}

async function perform(context: ProjectContext, find: () => Promise<Job>, choices: Choices): Promise<RewindResponse> {
	await context.ingestAll();
	const planning = new Planning(context, await find(), choices.overwrite);
	await planning.make();
	if (choices.dryRun || planning.isRefused) {
		return respond(planning, { dryRun: choices.dryRun, failed: null });
	}
	const open = await context.openTurn();
	return context.withMount(async () => {
		await planning.makeAgainIfMoved();
		if (planning.isRefused) {
			return respond(planning, { dryRun: false, failed: null });
		}
		await verifySources(context.fsop, context.store.shownPath, planning.plan);
		const resume = open !== null && context.isOwnerAlive(open) ? open : null;
		return respond(planning, { dryRun: false, failed: await rewindInSpan(context, planning, choices.exact, resume) });
	});
}

/**
 * Begins the rewind's span, applies the plan in it, and ends it.
 * @param resume the open turn whose owner goes on: a new turn begins for it afterwards
 * @returns what failed; null when conflicts came up at the last moment and nothing was changed
 */
async function rewindInSpan(
	context: ProjectContext,
	planning: Planning,
	exact: boolean,
	resume: Turn | null,
): Promise<PathReason[] | null> {
	const { store } = context;
	const { kind, turn, turns, undoes } = planning.job;
	const { epoch } = await context.beginSpan({ kind, meta: { turn: turn.turn, turns } });
	await planning.makeAgainIfMoved();
	await planning.lookBehindClosed();
	if (planning.isRefused) {
		await planning.giveUp();
		await goOn(context, resume);
		return null;
	}
	const details: RewindDetails = { epochs: [epoch], exact, undoes: undoes?.epoch ?? null, resumedTurn: null };
	const entry = { epoch, kind, turn: turn.turn, turns, undoneBy: null, beginNs: nowNs() };
	await store.putRewind({ ...entry, state: "applying", details });
	context.note(`${kind} of turn ${turn.turn}: ${planning.plan.steps.length} steps`);
	const failed = await applyAndCheck(context, planning);
	await settle(context, planning.job, epoch);
	await store.putRewind({ ...entry, state: "done", details });
	const resumedTurn = await goOn(context, resume);
	if (resumedTurn !== null) {
		await store.putRewind({ ...entry, state: "done", details: { ...details, resumedTurn } });
	}
	return failed;
}

/** Executes the plan in the current span, then looks whether the targets are reached. */
export async function applyAndCheck(context: ProjectContext, planning: Planning): Promise<PathReason[]> {
	const { fsop, store } = context;
	const { steps, staging } = planning.plan;
	const refused = await applySteps({ fsop, store, steps, staging });
	const rest = await planning.rest();
	const failed = new Map(refused.map(({ path, reason }) => [path, reason]));
	for (const step of rest.steps) {
		if (!failed.has(step.path)) {
			failed.set(step.path, "it is not as planned: changed meanwhile, or not supported here");
		}
	}
	return [...failed].map(([path, reason]) => ({ path, reason })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The turns' new state, and of a rewind that a redo has undone. */
export async function settle(context: ProjectContext, job: Job, epoch: number): Promise<void> {
	if (job.kind === "rewind") {
		await context.store.markRewound(job.turns, epoch);
		return;
	}
	await context.store.markLive(job.turns);
	if (job.undoes !== null) {
		await context.store.putRewind({ ...job.undoes, undoneBy: epoch });
	}
}

/** Ends the rewind's span; returns the number of the turn that begins, if one does. */
async function goOn(context: ProjectContext, resume: Turn | null): Promise<number | null> {
	if (resume === null) {
		await context.beginSpan({ kind: "between" });
		return null;
	}
	const { label, anchor, session, owner } = resume;
	const next: NextSpan = { kind: "turn", label, anchor, session, owner };
	await context.beginSpan(next);
	return (await context.openTurn())?.turn ?? null;
}

/** @param outcome.failed null: it was not applied */
function respond(planning: Planning, outcome: { dryRun: boolean; failed: PathReason[] | null }): RewindResponse {
	const { job, plan } = planning;
	const reasons = (list: PathReason[]) => list.map(({ path, reason }) => ({ ...pathToJson(path), reason }));
	const applied = outcome.failed !== null;
	return {
		turn: job.turn.turn,
		turns: job.turns,
		restored: plan.restored.map(pathToJson),
		deleted: plan.deleted.map(pathToJson),
		conflicts: reasons(plan.conflicts),
		skipped: reasons(plan.skipped),
		failed: reasons(outcome.failed ?? []),
		anchor: job.turn.anchor,
		redo: applied && job.kind === "rewind",
		dryRun: outcome.dryRun,
		applied,
	};
}
