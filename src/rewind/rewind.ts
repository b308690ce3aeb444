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
import { type Job, loadHistory, type RewindDetails, redoJob, rewindJob } from "./job.js";
import { planRewind } from "./plan.js";
import { lookAtPresent } from "./present.js";
import { leftOverStaging, stagingFolder } from "./staging.js";
import { collectTargets } from "./target.js";
import type { PathReason, Plan } from "./types.js";
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
	let seq = await context.ingestAll();
	const job = await find();
	let plan = await makePlan(context, job, choices.overwrite);
	if (choices.dryRun || isRefused(plan, choices)) {
		return respond(job, plan, { dryRun: choices.dryRun, applied: false, failed: [] });
	}
	const open = await context.openTurn();
	return context.withMount(async () => {
		seq = await replanIfMoved(seq);
		if (isRefused(plan, choices)) {
			return respond(job, plan, { dryRun: false, applied: false, failed: [] });
		}
		await verifySources(context.fsop, context.store.shownPath, plan.sources);
		const failed = await applyPlan(context, job, plan, {
			exact: choices.exact,
			resume: open !== null && context.isOwnerAlive(open) ? open : null,
			begun: async () => {
				await replanIfMoved(seq);
				return isRefused(plan, choices) ? null : plan;
			},
		});
		return respond(job, plan, { dryRun: false, applied: failed !== null, failed: failed ?? [] });
	});

	/** Whatever was touched since the plan was made may have changed it. */
	async function replanIfMoved(since: bigint): Promise<bigint> {
		const now = await context.ingestAll();
		for await (const _ of context.store.records(since + 1n)) {
			plan = await makePlan(context, job, choices.overwrite);
			break;
		}
		return now;
	}
}

interface Application {
	exact: boolean;
	/** The open turn whose owner goes on: a new turn begins for it afterwards. */
	resume: Turn | null;
	/** Called in the rewind's span, before its first change: the plan by then, or null when there are conflicts. */
	begun: () => Promise<Plan | null>;
}

/** @returns what failed; null when conflicts came up at the last moment and nothing was changed */
async function applyPlan(
	context: ProjectContext,
	job: Job,
	first: Plan,
	how: Application,
): Promise<PathReason[] | null> {
	const { store } = context;
	const { epoch } = await context.beginSpan({ kind: job.kind, meta: { turn: job.turn.turn, turns: job.turns } });
	let failed: PathReason[] | null = null;
	const plan = await how.begun();
	if (plan !== null) {
		const details: RewindDetails = {
			epochs: [epoch],
			exact: how.exact,
			undoes: job.undoes?.epoch ?? null,
			resumedTurn: null,
		};
		const entry = { epoch, kind: job.kind, turn: job.turn.turn, turns: job.turns, undoneBy: null, beginNs: nowNs() };
		await store.putRewind({ ...entry, state: "applying", details });
		context.note(`${job.kind} of turn ${job.turn.turn}: ${first.steps.length} steps`);
		failed = await applyAndCheck(context, job, plan);
		await settle(context, job, epoch);
		await store.putRewind({ ...entry, state: "done", details });
	}
	const resumed = await goOn(context, how.resume);
	if (plan !== null && resumed !== null) {
		const entry = await store.rewind(epoch);
		if (entry !== null) {
			await store.putRewind({ ...entry, details: { ...(entry.details as RewindDetails), resumedTurn: resumed } });
		}
	}
	return failed;
}

/** Executes the plan in the current span, then looks whether the targets are reached. */
export async function applyAndCheck(context: ProjectContext, job: Job, plan: Plan): Promise<PathReason[]> {
	const { fsop, store } = context;
	const refused = await applySteps({ fsop, store, steps: plan.steps, staging: plan.staging });
	await context.ingestAll();
	const rest = await makePlan(context, job, true);
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

/** Plans from what is now in the index and in the folder. */
export async function makePlan(context: ProjectContext, job: Job, overwrite: boolean): Promise<Plan> {
	const { store, fsop } = context;
	const history = await loadHistory(store, job);
	const targets = collectTargets(history.records, job.selection);
	const stagingFolders = await leftOverStaging(fsop);
	const present = await lookAtPresent({ store, fsop, targets, history, stagingFolders, wholeFolders: overwrite });
	const { lastEpoch } = await store.meta();
	return planRewind({
		targets,
		history,
		selection: job.selection,
		present,
		overwrite,
		uid: process.getuid?.() ?? 0,
		staging: stagingFolder(lastEpoch + 1),
	});
}

function isRefused(plan: Plan, choices: Choices): boolean {
	return plan.conflicts.length > 0 && !choices.overwrite;
}

function respond(
	job: Job,
	plan: Plan,
	outcome: { dryRun: boolean; applied: boolean; failed: PathReason[] },
): RewindResponse {
	const reasons = (list: PathReason[]) => list.map(({ path, reason }) => ({ ...pathToJson(path), reason }));
	return {
		turn: job.turn.turn,
		turns: job.turns,
		restored: plan.restored.map(pathToJson),
		deleted: plan.deleted.map(pathToJson),
		conflicts: reasons(plan.conflicts),
		skipped: reasons(plan.skipped),
		failed: reasons(outcome.failed),
		anchor: job.turn.anchor,
		redo: outcome.applied && job.kind === "rewind",
		dryRun: outcome.dryRun,
		applied: outcome.applied,
	};
}
