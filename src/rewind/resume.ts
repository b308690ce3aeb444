/**
 * Finishes a rewind that was interrupted (the daemon or the machine died). Its journal entry says what it was about; the plan is
 * made again from the present, staging included, so whatever was already done is simply no longer a step.
 */
import type { ProjectContext } from "../daemon/project-context.js";
import type { RewindEntry } from "../store/store.js";
import { addOwnLanes, detailsOf, type Job, redoJobOf, rewindJob } from "./job.js";
import { Planning } from "./planning.js";
import { applyAndCheck, settle } from "./rewind.js";
import type { PathReason } from "./types.js";
import { verifySources } from "./verify.js";

export interface Resumed {
	entry: RewindEntry;
	failed: PathReason[];
}

/**
 * Called when the daemon starts, before anything else touches the project.
 * What somebody else changed while it lay interrupted is put back too: half of a rewind is nobody's state. A redo has it.
 * @throws TURNFS_STORE_DAMAGED
 */
export async function resumeRewinds(context: ProjectContext): Promise<Resumed[]> {
	const interrupted: RewindEntry[] = [];
	for await (const entry of context.store.rewinds()) {
		if (entry.state === "applying") {
			interrupted.push(entry);
		}
	}
	const resumed: Resumed[] = [];
	// Newest first, as they are listed; there is more than one only if a resumption was interrupted before it began its span.
	for (const entry of interrupted) {
		resumed.push({ entry, failed: await resume(context, entry) });
	}
	return resumed;
}

async function resume(context: ProjectContext, entry: RewindEntry): Promise<PathReason[]> {
	const { store } = context;
	const details = detailsOf(entry);
	context.note(`finishing the ${entry.kind} of turn ${entry.turn}, which was interrupted`);
	return context.withMount(async () => {
		const meta = { turn: entry.turn, turns: entry.turns, resumes: entry.epoch };
		const { epoch } = await context.beginSpan({ kind: entry.kind, meta });
		const epochs = [...details.epochs, epoch];
		await store.putRewind({ ...entry, details: { ...details, epochs } });
		const job = addOwnLanes(await jobOf(context, entry), details.epochs);
		const planning = new Planning(context, job, true);
		await planning.make();
		await planning.lookBehindClosed();
		await verifySources(context.fsop, store.shownPath, planning.plan);
		const failed = await applyAndCheck(context, planning);
		await settle(context, job, entry.epoch);
		await store.putRewind({ ...entry, state: "done", details: { ...details, epochs } });
		await context.beginSpan({ kind: "between" });
		return failed;
	});
}

async function jobOf(context: ProjectContext, entry: RewindEntry): Promise<Job> {
	const { store } = context;
	const { exact, undoes } = detailsOf(entry);
	if (entry.kind === "redo" && undoes !== null) {
		const rewind = await store.rewind(undoes);
		if (rewind !== null) {
			return redoJobOf(store, rewind);
		}
	}
	// It may have been interrupted between marking its turns and its own end: they count as live once more.
	const turn = await store.requireTurn(entry.turn);
	if (turn.state === "rewound" && turn.rewoundBy === entry.epoch) {
		await store.markLive(entry.turns);
	}
	return rewindJob(store, entry.turn, exact);
}
