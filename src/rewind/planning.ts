/** A plan on its way: made from what is in the index and in the folder, and made again when either has moved. */
import type { ProjectContext } from "../daemon/project-context.js";
import type { FileStat } from "../engine/fsop.js";
import type { ByteString, ObjectId } from "../store/records.js";
import type { History } from "./history.js";
import { type Job, loadHistory } from "./job.js";
import { closeAgain, openClosed } from "./open-closed.js";
import { hasOtherNames, planRewind } from "./plan.js";
import { lookAtPresent } from "./present.js";
import { leftOverStaging, stagingFolder } from "./staging.js";
import { collectTargets } from "./target.js";
import type { Plan, Present, Selection, Targets } from "./types.js";

export class Planning {
	readonly job: Job;
	private readonly context: ProjectContext;
	private readonly overwrite: boolean;
	/** Folders opened for the moment, as they were. */
	private readonly opened = new Map<ByteString, FileStat>();
	/** Journal position up to which the plan knows everything. */
	private seq = 0n;
	/** Objects that are in the tree no longer and have to be, and that a rewind or redo has changed since. */
	private readonly comingBack = new Set<ObjectId>();
	private latest: Plan | null = null;

	constructor(context: ProjectContext, job: Job, overwrite: boolean) {
		this.context = context;
		this.job = job;
		this.overwrite = overwrite;
	}

	get plan(): Plan {
		if (this.latest === null) {
			throw new Error("nothing was planned yet");
		}
		return this.latest;
	}

	/** True when there are conflicts and nobody said that they may be overwritten. */
	get isRefused(): boolean {
		return this.plan.conflicts.length > 0 && !this.overwrite;
	}

	async make(): Promise<void> {
		this.seq = await this.context.ingestAll();
		this.latest = await this.planNow(false);
	}

	/** Whatever was touched since the plan was made may have changed it. */
	async makeAgainIfMoved(): Promise<void> {
		const since = this.seq;
		this.seq = await this.context.ingestAll();
		for await (const _ of this.context.store.records(since + 1n)) {
			this.latest = await this.planNow(false);
			break;
		}
	}

	/** Opens what an ordinary user has shut to itself, and plans with what can be seen then. In the rewind's span only. */
	async lookBehindClosed(): Promise<void> {
		const { fsop } = this.context;
		while (this.plan.closed.length > 0 && (await openClosed(fsop, this.plan.closed, ownUid(), this.opened))) {
			this.latest = await this.planNow(false);
		}
	}

	/** Nothing will be changed after all. */
	async giveUp(): Promise<void> {
		await closeAgain(this.context.fsop, this.opened);
	}

	/** After it was applied: what is still not as it must be. */
	async rest(): Promise<Plan> {
		await this.context.ingestAll();
		this.opened.clear();
		return this.planNow(true);
	}

	/** True when there are objects which come back that an earlier rewind or redo had changed, and that were not known as such. */
	private noteComingBack(targets: Targets, present: Present, history: History): boolean {
		const known = this.comingBack.size;
		for (const { object } of targets.entries.values()) {
			const seen = object === null ? undefined : present.objects.get(object);
			const isInTree = seen !== undefined && (seen.names.length > 0 || hasOtherNames(seen));
			if (object !== null && !isInTree && history.wasRewound(object)) {
				this.comingBack.add(object);
			}
		}
		return this.comingBack.size > known;
	}

	private async planNow(isApplied: boolean): Promise<Plan> {
		const { store, fsop } = this.context;
		const { job } = this;
		const history = await loadHistory(store, job);
		const overwrite = this.overwrite || isApplied;
		const stagingFolders = await leftOverStaging(fsop);
		const look = (targets: Targets) =>
			lookAtPresent({
				store,
				fsop,
				targets,
				history,
				stagingFolders,
				wholeFolders: overwrite,
				opened: this.opened,
				trustUnreadable: isApplied,
			});
		const selection: Selection = { ...job.selection, comingBack: this.comingBack };
		let targets = collectTargets(history.records, selection);
		let present = await look(targets);
		if (this.noteComingBack(targets, present, history)) {
			targets = collectTargets(history.records, selection);
			present = await look(targets);
		}
		const { lastEpoch } = await store.meta();
		return planRewind({
			targets,
			history,
			selection,
			present,
			overwrite,
			uid: ownUid(),
			staging: stagingFolder(lastEpoch + 1),
		});
	}
}

function ownUid(): number {
	return process.getuid?.() ?? 0;
}
