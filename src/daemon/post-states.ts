/**
 * Post-states: what each entry and object that a span touched had become when it ended. A later difference that the journal
 * doesn't explain is somebody's change outside the mount.
 */
import type { FileStat, Fsop, Place } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import { postKeyText } from "../store/keys.js";
import type { Binding, ByteString, ObjectId, PostState } from "../store/records.js";
import { type HistoryStore, type PostKey, ROOT_OBJECT } from "../store/store.js";
import { collectTouched, type Touched } from "../store/touched.js";
import { digestXattrs } from "../store/xattr-digest.js";
import { joinPath } from "../text/byte-string.js";
import { roots } from "./project-context.js";

/** Calls to fsop that are under way at once. */
const WINDOW = 512;

export interface LookOptions {
	/** After a crash: what changed later than this was changed by somebody else, so its state then is not known. */
	lastActivityNs?: bigint;
	/** The journal's position now. */
	position: () => Promise<bigint>;
	/** Brings what was journaled meanwhile into the index. */
	catchUp: () => Promise<void>;
}

const CLOSED = "closed";

export type Looked = [key: PostKey, state: PostState][];

/** Looks at what the span touched and writes its post-states. @param endSeq the next span's first record */
export async function recordPostStates(
	store: HistoryStore,
	fsop: Fsop,
	epoch: number,
	endSeq: bigint,
	options: LookOptions,
): Promise<void> {
	const span = await store.span(epoch);
	if (span === null) return;
	const touched = await collectTouched(store, span.firstSeq, endSeq);
	await store.putPostStates(epoch, await lookAtTouched(store, fsop, touched, endSeq, options));
}

/**
 * The present state of what was touched. Things that somebody went on changing through the mount while we looked are left out: the
 * journal has their state from before that.
 */
export async function lookAtTouched(
	store: HistoryStore,
	fsop: Fsop,
	touched: Touched,
	endSeq: bigint,
	options: LookOptions,
): Promise<Looked> {
	const look = new Look(store, fsop, options.lastActivityNs ?? null);
	const states = await look.all(touched);
	const seq = await options.position();
	let moving: Touched | null = null;
	if (look.surprises > 0) {
		await options.catchUp();
		moving = await collectTouched(store, endSeq, undefined);
	}
	return states.filter(([key]) => !isTouched(moving, key)).map(([key, state]) => [key, { ...state, seq }]);
}

function isTouched(touched: Touched | null, key: PostKey): boolean {
	if (touched === null) return false;
	return key.type === "entry" ? touched.entries.has(postKeyText(key)) : touched.objects.has(key.object);
}

/** One look at the project. */
class Look {
	/** Things that were not where the index has them. */
	surprises = 0;
	readonly #store: HistoryStore;
	readonly #fsop: Fsop;
	readonly #lastActivityNs: bigint | null;
	readonly #bindings = new Map<ObjectId, Binding | null>();
	/** Where entries have led to already. */
	readonly #seen = new Map<ObjectId, ByteString>();

	constructor(store: HistoryStore, fsop: Fsop, lastActivityNs: bigint | null) {
		this.#store = store;
		this.#fsop = fsop;
		this.#lastActivityNs = lastActivityNs;
	}

	async all(touched: Touched): Promise<Looked> {
		const entries = [...touched.entries.values()];
		await this.#prefetch([...new Set([...entries.map((key) => key.dir), ...touched.objects])]);
		const states: Looked = [];
		for (let at = 0; at < entries.length; at += WINDOW) {
			states.push(...(await this.#entries(entries.slice(at, at + WINDOW))));
		}
		const objects = [...touched.objects];
		for (let at = 0; at < objects.length; at += WINDOW) {
			const window = objects.slice(at, at + WINDOW);
			const found = await Promise.all(window.map((object) => this.#object(object)));
			window.forEach((object, i) => {
				const state = found[i];
				if (state !== undefined) states.push([{ type: "object", object }, state]);
			});
		}
		return states;
	}

	async #prefetch(objects: ObjectId[]): Promise<void> {
		const found = await this.#store.bindings(objects);
		objects.forEach((object, i) => {
			this.#bindings.set(object, found[i] ?? null);
		});
	}

	async #entries(keys: (PostKey & { type: "entry" })[]): Promise<Looked> {
		const dirs = new Map<ObjectId, ByteString | null>();
		for (const { dir } of keys) {
			if (!dirs.has(dir)) dirs.set(dir, await this.#store.pathOf(dir, this.#bindings));
		}
		const paths = keys.map((key) => {
			const dir = dirs.get(key.dir) ?? null;
			return dir === null ? null : joinPath(dir, key.name);
		});
		const stats = await Promise.all(
			paths.map((path) => (path === null ? null : this.#stat({ root: roots.project, path }))),
		);
		const present = stats.filter((stat) => stat !== null && stat !== CLOSED);
		const objects = await this.#store.lookupIdentities(present);
		let next = 0;
		return keys.flatMap((key, i): Looked => {
			const stat = stats[i] ?? null;
			const path = paths[i] ?? "";
			if (stat === CLOSED) return [];
			if (stat === null) return [[key, { ...absent, path }]];
			const object = objects[next++] ?? null;
			if (object !== null && !this.#seen.has(object)) this.#seen.set(object, path);
			if (object === null) this.surprises++;
			return [[key, this.#state(stat, object, path)]];
		});
	}

	/** An ordinary user can't look into its own folders of mode 000: what is in them gets no post-state. */
	async #stat(place: Place, options: { xattrs?: boolean } = {}): Promise<FileStat | typeof CLOSED | null> {
		try {
			return await this.#fsop.statIfPresent(place, options);
		} catch (error) {
			if (error instanceof EngineError && error.code === "EACCES") return CLOSED;
			throw error;
		}
	}

	async #object(object: ObjectId): Promise<PostState | undefined> {
		const found = await this.#find(object);
		if (found === CLOSED) return undefined;
		if (found === null) {
			this.surprises++;
			return { ...absent, path: "" };
		}
		const stored = found.place.root === roots.storePlain;
		const state = this.#state(found.stat, object, found.place.path);
		return { ...state, stored, xattrs: digestXattrs(found.stat.xattrs) };
	}

	/** By its last known name, else where it lies in the store, else by its file handle. */
	async #find(object: ObjectId): Promise<{ stat: FileStat; place: Place } | typeof CLOSED | null> {
		const project = (path: ByteString): Place => ({ root: roots.project, path });
		if (object === ROOT_OBJECT) {
			const place = project("");
			return { stat: await this.#fsop.stat(place, { xattrs: true }), place };
		}
		const binding = this.#bindings.get(object) ?? null;
		if (binding === null) return null;
		const named = this.#seen.get(object) ?? (await this.#store.pathOf(object, this.#bindings));
		const places = named === null ? [] : [project(named)];
		if (binding.place !== null) places.push({ root: roots.storePlain, path: binding.place });
		for (const place of places) {
			const stat = await this.#stat(place, { xattrs: true });
			if (stat === CLOSED) return CLOSED;
			if (stat !== null && isSame(stat, binding)) return { stat, place };
		}
		if (binding.handle === "") return null;
		const place = await this.#openHandle(binding.handle);
		const stat = place === null ? null : await this.#stat(place, { xattrs: true });
		if (stat === CLOSED) return CLOSED;
		return place !== null && stat !== null && isSame(stat, binding) ? { stat, place } : null;
	}

	/** null when it has gone, or when the filesystem or our rights don't allow handles. */
	async #openHandle(handle: ByteString): Promise<Place | null> {
		try {
			return { root: roots.project, path: await this.#fsop.openHandle(roots.project, handle) };
		} catch (error) {
			if (error instanceof EngineError) return null;
			throw error;
		}
	}

	#state(stat: FileStat, object: ObjectId | null, path: ByteString): PostState {
		const changedLater = this.#lastActivityNs !== null && stat.ctimeNs > this.#lastActivityNs;
		return {
			seq: 0n,
			object,
			unknown: object === null || changedLater,
			mode: stat.mode,
			uid: stat.uid,
			gid: stat.gid,
			size: stat.size,
			mtimeNs: stat.mtimeNs,
			ctimeNs: stat.ctimeNs,
			path,
			stored: false,
			xattrs: "",
		};
	}
}

const absent: PostState = {
	seq: 0n,
	object: null,
	unknown: false,
	mode: 0,
	uid: 0,
	gid: 0,
	size: 0n,
	mtimeNs: 0n,
	ctimeNs: 0n,
	path: "",
	stored: false,
	xattrs: "",
};

function isSame(stat: FileStat, binding: Binding): boolean {
	return stat.ino === binding.ino && stat.dev === binding.dev && stat.birthNs === binding.birthNs;
}
