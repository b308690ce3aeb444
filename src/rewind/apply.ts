/**
 * Executes a plan's steps, through the mount and as an ordinary program would, so that the engine captures what a redo needs
 * and every cache and watcher inside the mount is right. Steps are sent ahead of their answers: fsop executes them in order.
 * A step that fails is reported and the others go on; the look afterwards tells what is not as planned.
 */
import { roots } from "../daemon/project-context.js";
import {
	type AttrChange,
	type FileStat,
	type Fsop,
	type Place,
	S_IFDIR,
	S_IFLNK,
	S_IFMT,
	S_IFREG,
} from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import type { ByteString } from "../store/records.js";
import type { HistoryStore } from "../store/store.js";
import { packPath } from "./compare-bytes.js";
import { Staging } from "./staging.js";
import { depthOf } from "./target-tree.js";
import type { PathReason, Piece, Step, StepPlace, WantedAttrs } from "./types.js";

/** Requests under way at once: enough that fsop never waits for us, and answers don't pile up. */
const WINDOW = 512;

type StepOf<K extends Step["do"]> = Extract<Step, { do: K }>;

export interface ApplyRequest {
	fsop: Fsop;
	store: HistoryStore;
	steps: readonly Step[];
	/** The plan's. */
	staging: ByteString;
}

/** @returns the steps that failed */
export function applySteps(request: ApplyRequest): Promise<PathReason[]> {
	return new Applier(request).apply();
}

class Applier {
	private readonly request: ApplyRequest;
	private readonly fsop: Fsop;
	private readonly staging: Staging;
	private readonly failed: PathReason[] = [];
	private readonly running = new Set<Promise<void>>();
	/** Made again, but not yet known to the history as the old object. */
	private unclaimed: StepOf<"make">[] = [];

	constructor(request: ApplyRequest) {
		this.request = request;
		this.fsop = request.fsop;
		this.staging = new Staging(request.fsop, request.staging);
	}

	async apply(): Promise<PathReason[]> {
		try {
			await this.applyAll();
		} finally {
			// After a broken channel every request under way fails; each of these has to be heard.
			await Promise.allSettled([...this.running]);
		}
		return this.failed;
	}

	private async applyAll(): Promise<void> {
		const { steps } = this.request;
		await this.staging.open(steps.some((step) => step.do === "move" && this.staging.holds(step.to)));
		const end = 1 + steps.findLastIndex((step) => step.do !== "attrs");
		let attributes: StepOf<"attrs">[] = [];
		for (const step of steps.slice(0, end)) {
			if (step.do === "attrs") {
				attributes.push(step);
				continue;
			}
			await this.setAttributes(attributes);
			attributes = [];
			if (this.mustClaimBefore(step)) {
				await this.claim();
			}
			await this.start(step);
		}
		await this.claim();
		await this.staging.close();
		await this.setAttributes(steps.slice(end).filter((step): step is StepOf<"attrs"> => step.do === "attrs"));
	}

	// --- sending ahead ---

	private async start(step: Step): Promise<void> {
		if (step.do === "move" && this.staging.holds(step.to) && !this.staging.isProven) {
			await this.drain();
			await this.attempt(step.path, () => this.staging.prove(this.place(step.from), step.to));
			return;
		}
		this.send(step.path, () => this.execute(step));
		if (step.do === "make") {
			this.unclaimed.push(step);
		}
		if (this.running.size >= WINDOW) {
			await this.drain();
		}
	}

	private send(path: ByteString, action: () => Promise<void>): void {
		const one = this.attempt(path, action).finally(() => this.running.delete(one));
		this.running.add(one);
	}

	private async attempt(path: ByteString, action: () => Promise<void>): Promise<void> {
		try {
			await action();
		} catch (error) {
			if (!(error instanceof EngineError)) {
				throw error;
			}
			this.failed.push({ path, reason: `${error.code} (${error.where})` });
		}
	}

	private async drain(): Promise<void> {
		await Promise.all([...this.running]);
	}

	// --- objects made again ---

	/**
	 * What is made in a folder that was itself made again must not be before the history knows the folder: after a crash it
	 * would look like somebody else's.
	 */
	private mustClaimBefore(step: Step): boolean {
		const depth = this.unclaimed[0]?.depth;
		if (depth === undefined) {
			return false;
		}
		if (step.do === "make") {
			return step.depth > depth;
		}
		return step.do !== "move" || depthOf(step.to.path) > depth;
	}

	private async claim(): Promise<void> {
		await this.drain();
		const made = this.unclaimed;
		this.unclaimed = [];
		await Promise.all(
			made.map((step) =>
				this.attempt(step.path, async () => {
					const { dev, ino, birthNs } = await this.fsop.stat({ root: roots.project, path: step.at.path });
					await this.request.store.claim({ dev, ino, birthNs }, step.object);
				}),
			),
		);
	}

	// --- steps ---

	/** Sends a step's requests in order without waiting between them where that order is enough. */
	private async execute(step: Step): Promise<void> {
		switch (step.do) {
			case "open-up":
				return this.fsop.attrs(this.place(step.at), { mode: step.mode });
			case "move":
				return this.fsop.rename(this.place(step.from), this.place(step.to));
			case "unlink":
				return this.fsop.unlink(this.place(step.at));
			case "rmdir":
				return this.rmdir(step);
			case "link":
				return this.fsop.link(this.place(step.from), this.place(step.to));
			case "make":
				return this.make(step);
			case "bytes":
				return this.writeBytes(step);
			case "attrs":
				return;
		}
	}

	private async rmdir(step: StepOf<"rmdir">): Promise<void> {
		try {
			await this.fsop.rmdir(this.place(step.at));
		} catch (error) {
			// Somebody has put something into it since the plan was made: then it stays, as it would have by the plan.
			if (!(error instanceof EngineError && error.code === "ENOTEMPTY")) {
				throw error;
			}
		}
	}

	private make(step: StepOf<"make">): Promise<void> {
		const place = this.place(step.at);
		const { attrs, data } = step;
		switch (attrs.mode & S_IFMT) {
			case S_IFDIR:
				return this.fsop.mkdir(place, 0o700);
			case S_IFLNK:
				return this.fsop.symlink(place, attrs.target ?? "");
			case S_IFREG: {
				const requests = [this.fsop.create(place, 0o600)];
				if (data !== null) {
					requests.push(this.fsop.truncate(place, data.size));
					requests.push(...this.copies(place, data.pieces));
				}
				return all(requests);
			}
			default:
				return this.fsop.mknod(place, (attrs.mode & S_IFMT) | 0o600, attrs.rdev);
		}
	}

	private writeBytes(step: StepOf<"bytes">): Promise<void> {
		const place = this.place(step.at);
		const requests: Promise<void>[] = [];
		const last = step.pieces.at(-1);
		const tail = last?.kind === "hole" && last.offset + last.length === step.size ? last : null;
		// Punching can't free the block that the end lies in; cutting the hole off and growing again can.
		if (tail !== null && tail.offset < step.presentSize) {
			requests.push(this.fsop.truncate(place, tail.offset), this.fsop.truncate(place, step.size));
		} else if (step.presentSize !== step.size) {
			requests.push(this.fsop.truncate(place, step.size));
		}
		for (const piece of step.pieces) {
			// Beyond the end that it had, the truncate has just made a hole.
			if (piece.kind === "hole" && piece !== tail && piece.offset < step.presentSize) {
				requests.push(this.fsop.punch(place, piece.offset, piece.length));
			}
		}
		requests.push(...this.copies(place, step.pieces));
		return all(requests);
	}

	private copies(place: Place, pieces: readonly Piece[]): Promise<void>[] {
		return pieces
			.filter((piece) => piece.kind !== "hole")
			.map((piece) => {
				const from: Place = { root: roots.storePlain, path: packPath(piece) };
				return this.fsop.copy(place, piece.offset, piece.length, from, piece.fileOffset);
			});
	}

	private place(at: StepPlace): Place {
		return this.staging.translate(at) ?? { root: at.root === "mount" ? roots.mount : roots.store, path: at.path };
	}

	// --- attributes ---

	/**
	 * In the plan's order, folders last and deepest first: a folder's final permissions may shut the way to what is in it.
	 * What is there now is looked at just before, because writing and chown change permission bits and capabilities.
	 */
	private async setAttributes(steps: readonly StepOf<"attrs">[]): Promise<void> {
		if (steps.length > 0) {
			await this.drain();
		}
		for (let start = 0; start < steps.length; start += WINDOW) {
			const some = steps.slice(start, start + WINDOW);
			const looks = some.map(({ at }) => orError(this.fsop.stat(behindMount(at), { xattrs: true })));
			const stats = await Promise.all(looks);
			for (const [index, step] of some.entries()) {
				const stat = stats[index] as FileStat | EngineError;
				if (stat instanceof EngineError) {
					this.failed.push({ path: step.path, reason: `${stat.code} (${stat.where})` });
					continue;
				}
				const change = attrChange(stat, step.want);
				if (change !== null) {
					this.send(step.path, () => this.changeAttributes(this.place(step.at), change));
				}
			}
			await this.drain();
		}
	}

	/** All at once; when part of it is refused (an ordinary user can't give a file away), the rest one by one. */
	private async changeAttributes(place: Place, change: AttrChange): Promise<void> {
		try {
			await this.fsop.attrs(place, change);
		} catch (error) {
			if (!(error instanceof EngineError)) {
				throw error;
			}
			const parts = splitChange(change);
			if (parts.length < 2) {
				throw error;
			}
			await all(parts.map((part) => this.fsop.attrs(place, part)));
		}
	}
}

/** The same place for looking only: no cache is met or filled. */
function behindMount(at: StepPlace): Place {
	return { root: at.root === "mount" ? roots.project : roots.storePlain, path: at.path };
}

/** null: nothing differs. */
function attrChange(stat: FileStat, want: WantedAttrs): AttrChange | null {
	const change: AttrChange = {};
	const isLink = (stat.mode & S_IFMT) === S_IFLNK;
	if (stat.uid !== want.uid) {
		change.uid = want.uid;
	}
	if (stat.gid !== want.gid) {
		change.gid = want.gid;
	}
	const set = Object.entries(want.xattrs).filter(([name, value]) => stat.xattrs[name] !== value);
	const removed = Object.keys(stat.xattrs).filter((name) => !Object.hasOwn(want.xattrs, name));
	if (set.length > 0) {
		change.setXattrs = Object.fromEntries(set);
	}
	if (removed.length > 0) {
		change.removeXattrs = removed;
	}
	// A chown clears the set-uid bits, an ACL changes the group's bits: the mode goes with them.
	const disturbsMode = Object.keys(change).length > 0;
	if (!isLink && (disturbsMode || (stat.mode & 0o7777) !== (want.mode & 0o7777))) {
		change.mode = want.mode & 0o7777;
	}
	if (stat.mtimeNs !== want.mtimeNs) {
		change.mtimeNs = want.mtimeNs;
	}
	return Object.keys(change).length > 0 ? change : null;
}

function splitChange(change: AttrChange): AttrChange[] {
	const parts: AttrChange[] = [];
	if (change.uid !== undefined) {
		parts.push({ uid: change.uid });
	}
	if (change.gid !== undefined) {
		parts.push({ gid: change.gid });
	}
	for (const [name, value] of Object.entries(change.setXattrs ?? {})) {
		parts.push({ setXattrs: { [name]: value } });
	}
	for (const name of change.removeXattrs ?? []) {
		parts.push({ removeXattrs: [name] });
	}
	if (change.mode !== undefined) {
		parts.push({ mode: change.mode });
	}
	if (change.mtimeNs !== undefined) {
		parts.push({ mtimeNs: change.mtimeNs });
	}
	return parts;
}

/** Waits for every request, then fails with the first error: no rejection is left unheard. */
async function all(requests: Promise<void>[]): Promise<void> {
	const results = await Promise.allSettled(requests);
	for (const result of results) {
		if (result.status === "rejected") {
			throw result.reason;
		}
	}
}

async function orError<T>(result: Promise<T>): Promise<T | EngineError> {
	try {
		return await result;
	} catch (error) {
		if (error instanceof EngineError) {
			return error;
		}
		throw error;
	}
}
