/**
 * The daemon's state: one project, its store, and its mount while there is one. Everything that changes state runs through `serial`,
 * one at a time; the routes see to that.
 */
import { mkdirSync, realpathSync, rmdirSync } from "node:fs";
import type { Position, SpanRequest } from "../engine/control.js";
import { enginePath } from "../engine/engine-path.js";
import { Fsop } from "../engine/fsop.js";
import { describeCause, TurnfsError } from "../errors.js";
import { ingestJournal } from "../store/ingest.js";
import { checkLayout, nextPackNumber } from "../store/layout.js";
import type { PostState, Turn } from "../store/records.js";
import { HistoryStore, type PostKey } from "../store/store.js";
import { addTouched, type Touched } from "../store/touched.js";
import { joinPath, toByteString } from "../text/byte-string.js";
import type { BehindJson, MountRequest } from "./api.js";
import { passBarrier } from "./barrier.js";
import { findBehind, findInside } from "./behind.js";
import { EngineMount, KEEPER_PROJECT_FD, KEEPER_STORE_FD } from "./engine-mount.js";
import { closeFolders, type Folders, openFolders } from "./folders.js";
import { describeProcesses, Holds } from "./holds.js";
import { logLine } from "./log-line.js";
import { Owners } from "./owners.js";
import { lookAtTouched, recordPostStates } from "./post-states.js";
import { Problems } from "./problems.js";
import { isProcessAlive, processStart } from "./process-life.js";
import { type ActiveMount, type NextSpan, type ProjectContext, roots } from "./project-context.js";
import { completePostStates, finishSession } from "./recovery.js";
import {
	type RuntimeInfo,
	readRuntimeInfo,
	removeRuntimeInfo,
	runtimePaths,
	writeRuntimeInfo,
} from "./runtime-files.js";
import { Serial } from "./serial.js";
import { spanRequest } from "./span-request.js";
import { removeStaleMount } from "./unmount.js";

export class ProjectDaemon implements ProjectContext {
	readonly folders: Folders;
	readonly store: HistoryStore;
	readonly fsop: Fsop;
	readonly serial = new Serial();
	readonly holds = new Holds();
	readonly problems = new Problems();
	/** The last hold that had mounted is gone, but something still used the mount: it goes as soon as it can. */
	unmountWhenIdle = false;
	/** Processes behind the mount at the last look. */
	behind: BehindJson[] = [];
	readonly #owners: Owners;
	#mount: EngineMount | null = null;
	/** Detached lazily: processes still use it, so its engine still writes the journal. */
	#detached: EngineMount | null = null;
	#rootsOpen = 0;
	/** An engine that dies again while we mend things is not mended again at once. */
	#recovering = false;
	/** The daemon is about to end: connections that break now are its own doing, and end nobody's turn. */
	closing = false;
	/** Called under the lock after an engine has died, once the history is up to date again. */
	onEngineCrash: () => Promise<void> = async () => {};

	private constructor(folders: Folders, store: HistoryStore, fsop: Fsop) {
		this.folders = folders;
		this.store = store;
		this.fsop = fsop;
		this.#owners = new Owners(store);
	}

	/**
	 * Opens the store, joins a mount that is there, else finishes what a crash has left.
	 * @throws TURNFS_STORE_LOCKED, TURNFS_STORE_DAMAGED, TURNFS_STORE_TOO_NEW, TURNFS_STORE_UNUSABLE
	 */
	static async open(project: string, storePath: string): Promise<ProjectDaemon> {
		const info = readRuntimeInfo(project);
		const folders = openFolders(project, storePath, info);
		let store: HistoryStore | null = null;
		try {
			checkLayout(folders.storePath, storePath);
			store = await HistoryStore.open(folders.storePath, storePath);
			const fsop = await Fsop.spawn(enginePath(), 2);
			await fsop.root(roots.project, `/proc/${process.pid}/fd/${folders.projectFd}`);
			await fsop.root(roots.storePlain, `/proc/${process.pid}/fd/${folders.storeFd}`);
			const daemon = new ProjectDaemon(folders, store, fsop);
			await daemon.#join(info);
			return daemon;
		} catch (error) {
			await store?.close();
			closeFolders(folders);
			throw error;
		}
	}

	get project(): string {
		return this.folders.project;
	}

	get mount(): EngineMount | null {
		return this.#mount;
	}

	note(message: string): void {
		logLine(message);
	}

	isMounted(): boolean {
		return this.#mount !== null;
	}

	/** Something lives here that must not be left: a mount, or a detached one's engine. */
	get isNeeded(): boolean {
		return this.#mount !== null || this.#detached !== null || this.holds.size > 0 || this.serial.busy;
	}

	/** The last hold of the mount has gone, and it had mounted it. */
	get shouldUnmount(): boolean {
		return this.unmountWhenIdle && this.#mount !== null && !this.holds.holdsMount(this.#mount.keeperPid);
	}

	/** @throws TURNFS_NOT_MOUNTED */
	requireMount(): EngineMount {
		if (this.#mount === null) throw new TurnfsError("TURNFS_NOT_MOUNTED", { project: this.project });
		return this.#mount;
	}

	openTurn(): Promise<Turn | null> {
		return this.store.openTurn();
	}

	/** Lets go of everything; a mount goes on without us. */
	async close(): Promise<void> {
		this.closing = true;
		this.#mount?.control.close();
		await this.fsop.close();
		await this.store.close();
		if (this.#mount === null && this.#detached === null) removeRuntimeInfo(this.project);
		else this.#writeInfo({ daemonPid: null, daemonStart: null });
		closeFolders(this.folders);
	}

	// --- joining and losing an engine ---

	async #join(info: RuntimeInfo | null): Promise<void> {
		const keeperLives = info?.keeperPid != null && isProcessAlive(info.keeperPid, info.keeperStart);
		if (info !== null && keeperLives) {
			const { control } = runtimePaths(this.project);
			const mount = await EngineMount.attach(control, info.privateMount).catch((error) => {
				logLine(`the engine of keeper ${info.keeperPid} does not answer: ${describeCause(error)}`);
				return null;
			});
			if (mount !== null) {
				this.#adopt(mount);
				if (info.mountpoint === null) this.#detach(mount);
				await this.ingestAll();
				await this.#completePostStates();
				const open = await this.openTurn();
				if (open !== null) await this.loadOwnerStart(open);
				logLine(`joined the mount at ${mount.mountpoint}`);
				return;
			}
			await EngineMount.waitForEnd(info.mountpoint, info);
		} else if (info?.mountpoint) {
			await removeStaleMount(info.mountpoint);
		}
		const how = await finishSession(this.store, this.fsop, false);
		if (how !== "none") {
			logLine(`the history is up to date; the last mount ${how === "crashed" ? "crashed" : "ended in order"}`);
		}
		this.#writeInfo({});
	}

	/** A rewind's own mount that outlived the daemon which made it: its rewind has been finished by now. */
	async endTemporaryMount(): Promise<void> {
		const mount = this.#mount;
		if (!mount?.temporary) return;
		await this.stopMount(false);
		rmdirSync(mount.mountpoint);
	}

	#adopt(mount: EngineMount): void {
		this.#mount = mount;
		this.#writeInfo({});
		void mount.control.closed
			.then(() => {
				if (!this.closing) return this.serial.run(() => this.#engineHasGone(mount));
			})
			.catch((error: unknown) =>
				this.problems.report(TurnfsError.from(error, "TURNFS_DAEMON_FAILED", { log: "daemon.log" })),
			);
	}

	/** The control socket closed: somebody unmounted by hand, or the engine crashed, or a detached mount is free at last. */
	async #engineHasGone(mount: EngineMount): Promise<void> {
		const wasDetached = this.#detached === mount;
		if (this.#mount !== mount && !wasDetached) return;
		const turnWasOpen = (await this.openTurn()) !== null;
		await mount.ended();
		this.#mount = null;
		this.#detached = null;
		this.unmountWhenIdle = false;
		const how = await finishSession(this.store, this.fsop, true);
		this.#writeInfo({});
		logLine(`the engine at ${mount.mountpoint} has ended: ${how}`);
		// An unmount by hand is fine, but not one that takes a turn's mount away (also what a killed keeper leads to).
		if (how === "crashed" || (turnWasOpen && !wasDetached)) {
			this.problems.report(this.#engineGoneError());
		}
		// Whoever has the lock now may still be working with what has gone, so this comes after it.
		if (!this.#recovering) {
			void this.serial.run(async () => {
				this.#recovering = true;
				await this.onEngineCrash();
				this.#recovering = false;
			});
		}
	}

	#engineGoneError(cause?: unknown): TurnfsError {
		const log = `${this.folders.store}/engine.log`;
		return new TurnfsError("TURNFS_ENGINE_GONE", { project: this.project, log }, cause);
	}

	#writeInfo(change: Partial<RuntimeInfo>): void {
		const mount = this.#mount ?? this.#detached;
		writeRuntimeInfo({
			project: this.project,
			store: this.folders.store,
			mountpoint: this.#mount?.mountpoint ?? null,
			keeperPid: mount?.keeperPid ?? null,
			keeperStart: mount?.keeperStart ?? null,
			enginePid: mount?.enginePid ?? null,
			projectFd: KEEPER_PROJECT_FD,
			storeFd: KEEPER_STORE_FD,
			daemonPid: process.pid,
			daemonStart: processStart(process.pid),
			privateMount: mount?.temporary ?? false,
			...change,
		});
	}

	// --- mount and unmount ---

	/** @throws TURNFS_ALREADY_MOUNTED, TURNFS_MOUNT_BUSY, TURNFS_MOUNT_FAILED, TURNFS_NO_FUSE */
	async startMount(request: MountRequest & { temporaryAt?: string }): Promise<EngineMount> {
		if (this.#mount !== null) {
			const { mountpoint } = this.#mount;
			throw new TurnfsError("TURNFS_ALREADY_MOUNTED", { project: this.project, mountpoint });
		}
		if (this.#detached !== null) {
			const { mountpoint } = this.#detached;
			throw new TurnfsError("TURNFS_MOUNT_BUSY", {
				mountpoint,
				holders: "processes that began before it was detached",
			});
		}
		const at = request.temporaryAt ?? resolveMountpoint(request.at ?? this.project);
		// A mount that failed half-way has left a journal file where the next one begins.
		await finishSession(this.store, this.fsop, false);
		const meta = await this.store.meta();
		const mount = await EngineMount.start({
			folders: this.folders,
			mountpoint: at,
			controlPath: runtimePaths(this.project).control,
			nextObject: meta.nextObject,
			nextSeq: meta.lastSeq + 1n,
			nextPack: nextPackNumber(this.folders.storePath),
			epoch: meta.lastEpoch + 1,
			meta: {},
			maxPreimageBytes: request.maxPreimageBytes,
			onCaptureFailure: request.onCaptureFailure,
			trace: request.trace ?? false,
			laneOwners: await this.#owners.laneOwners(),
			temporary: request.temporaryAt !== undefined,
		});
		this.#adopt(mount);
		await this.ingestAll();
		if (!mount.temporary) this.problems.forget("TURNFS_ENGINE_GONE");
		logLine(`mounted at ${at} (engine ${mount.enginePid}, keeper ${mount.keeperPid})`);
		return mount;
	}

	/**
	 * Takes the mount away. The open turn must have ended.
	 * @throws TURNFS_MOUNT_BUSY naming who stands or works in it
	 */
	async stopMount(lazy: boolean): Promise<void> {
		const mount = this.requireMount();
		if (!(await mount.unmount(lazy))) {
			const inside = await findInside(this.fsop, mount.mountpoint);
			const holders = inside.length === 0 ? "a process that has a file open" : describeProcesses(inside);
			throw new TurnfsError("TURNFS_MOUNT_BUSY", { mountpoint: mount.mountpoint, holders });
		}
		this.unmountWhenIdle = false;
		this.behind = [];
		// What is still open in a detached mount keeps its engine; its end is noticed by the control socket.
		if (lazy && !(await mount.endsWithin(500))) {
			this.#detach(mount);
			return;
		}
		await mount.ended();
		this.#mount = null;
		mount.control.close();
		await finishSession(this.store, this.fsop, true);
		this.#writeInfo({});
		logLine(`unmounted ${mount.mountpoint}`);
	}

	/** The mount is gone from the tree, but what is open in it still works, and is captured. */
	#detach(mount: EngineMount): void {
		this.#mount = null;
		this.#detached = mount;
		this.#writeInfo({});
		logLine(`${mount.mountpoint} is detached; something still uses it`);
	}

	async withMount<T>(work: (mount: ActiveMount) => Promise<T>): Promise<T> {
		if (this.#mount !== null) return this.#withRoots(this.#mount, work);
		const at = runtimePaths(this.project).privateMount;
		mkdirSync(at, { recursive: true, mode: 0o700 });
		const mount = await this.startMount({ temporaryAt: at });
		try {
			return await this.#withRoots(mount, work);
		} finally {
			// An engine that died inside `work` has taken the mount with it.
			if (mount.isGone) await this.#engineHasGone(mount);
			if (this.#mount === mount) await this.endTemporaryMount();
			else rmdirSync(at);
		}
	}

	async #withRoots<T>(mount: EngineMount, work: (mount: ActiveMount) => Promise<T>): Promise<T> {
		const mountpoint = toByteString(mount.mountpoint);
		if (this.#rootsOpen++ === 0) {
			const door = await mount.openDoor();
			await this.fsop.root(roots.mount, mount.mountpoint);
			await this.fsop.root(roots.store, joinPath(mount.mountpoint, door));
		}
		try {
			return await work({ mountpoint, temporary: mount.temporary });
		} catch (error) {
			if (!mount.isGone || error instanceof TurnfsError) throw error;
			throw this.#engineGoneError(error);
		} finally {
			if (--this.#rootsOpen === 0) {
				await this.fsop.closeRoot(roots.store);
				await this.fsop.closeRoot(roots.mount);
				if (!mount.isGone) await mount.closeDoor();
			}
		}
	}

	/** Looks who stands behind the mount, and keeps timeouts short while anybody does: what they change must be seen inside. */
	async refreshBehind(): Promise<BehindJson[]> {
		const mount = this.requireMount();
		const before = this.behind.length > 0;
		this.behind = await findBehind(this.fsop, this.folders);
		const now = this.behind.length > 0;
		if (before !== now) await mount.control.setShortTimeouts(now);
		return this.behind;
	}

	// --- spans ---

	async beginSpan(next: NextSpan): Promise<Position> {
		const mount = this.requireMount();
		const ending = (await this.store.meta()).lastEpoch;
		const position = await passBarrier(mount, this.fsop, await this.#spanRequest(next));
		await this.ingestAll();
		const begun = await this.store.span(position.epoch);
		if (begun !== null) {
			await recordPostStates(this.store, this.fsop, ending, begun.firstSeq, {
				position: () => this.#position(mount),
				catchUp: () => this.ingestAll().then(() => {}),
			});
		}
		return position;
	}

	async #spanRequest(next: NextSpan): Promise<SpanRequest> {
		const { lastEpoch, lastTurn } = await this.store.meta();
		const facts = { epoch: lastEpoch + 1, turn: lastTurn + 1, rewinder: this.fsop.pid, behind: this.behind };
		return spanRequest(next, facts);
	}

	async #position(mount: EngineMount): Promise<bigint> {
		return (await mount.control.hello()).seq;
	}

	async ingestAll(): Promise<bigint> {
		if (this.#mount !== null) await this.#mount.control.seal();
		const engineGone = this.#mount === null && this.#detached === null;
		const report = await ingestJournal(this.store, { engineGone });
		return report.lastSeq;
	}

	/** Ingests files that the engine has sealed by itself, so that the journal of a long turn does not pile up. */
	async ingestSealed(): Promise<void> {
		await ingestJournal(this.store, { engineGone: false });
	}

	async #completePostStates(): Promise<void> {
		await completePostStates(this.store, this.fsop, { catchUp: () => this.ingestAll().then(() => {}) });
	}

	/** What the newest span has touched, as it is now; empty when that span has ended. */
	async lookAtCurrent(): Promise<[PostKey, PostState][]> {
		const mount = this.#mount;
		if (mount === null) return [];
		await this.ingestAll();
		const span = await this.store.lastSpan();
		if (span === null || span.endNs !== null) return [];
		const touched: Touched = { entries: new Map(), objects: new Set() };
		for await (const record of this.store.records(span.firstSeq)) addTouched(touched, record);
		const { lastSeq } = await this.store.meta();
		return lookAtTouched(this.store, this.fsop, touched, lastSeq + 1n, {
			position: () => this.#position(mount),
			catchUp: async () => {},
		});
	}

	// --- owners ---

	isOwnerAlive(turn: Turn): boolean {
		return this.holds.holdsTurn(turn.turn) || this.#owners.isAlive(turn);
	}

	/** To be called before the first `isOwnerAlive` of a turn. */
	loadOwnerStart(turn: Turn): Promise<void> {
		return this.#owners.load(turn);
	}
}

/** @throws TURNFS_NO_SUCH_FOLDER */
function resolveMountpoint(at: string): string {
	try {
		return realpathSync.native(at);
	} catch (error) {
		throw new TurnfsError("TURNFS_NO_SUCH_FOLDER", { path: at, reason: (error as Error).message }, error);
	}
}
