/**
 * Where objects are now. A binding says where an object was last seen; each level of that path is checked by identity, because
 * somebody may have moved things outside the mount. Where that fails the filesystem is asked by file handle.
 */
import { roots } from "../daemon/project-context.js";
import { type FileStat, type Fsop, type Place, S_IFDIR, S_IFMT } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import type { Binding, ByteString, ObjectId } from "../store/records.js";
import type { HistoryStore } from "../store/store.js";
import { joinPath } from "../text/byte-string.js";
import type { History } from "./history.js";
import {
	entryKey,
	type Name,
	type Present,
	ROOT_OBJECT,
	type SeenObject,
	type StoredPlace,
	unknownObject,
} from "./types.js";

export class Locator {
	private readonly store: HistoryStore;
	private readonly fsop: Fsop;
	private readonly history: History;
	private readonly present: Present;
	private readonly bindings = new Map<ObjectId, Promise<Binding | null>>();
	private readonly found = new Map<ObjectId, Promise<Place | null>>();

	/** @param present what is found is noted in its `objects` */
	constructor(store: HistoryStore, fsop: Fsop, history: History, present: Present) {
		this.store = store;
		this.history = history;
		this.fsop = fsop;
		this.present = present;
	}

	/** Meets the project folder itself. Must come first. */
	async start(): Promise<void> {
		const stat = await this.fsop.stat({ root: roots.project, path: "" }, { xattrs: true });
		this.present.objects.set(ROOT_OBJECT, { object: ROOT_OBJECT, stat, names: [], stored: [] });
	}

	binding(object: ObjectId): Promise<Binding | null> {
		let known = this.bindings.get(object);
		if (known === undefined) {
			known = this.store.binding(object);
			this.bindings.set(object, known);
		}
		return known;
	}

	/** The object that an inode is, or null when the history has not met it. */
	identify(stat: FileStat): Promise<ObjectId | null> {
		return this.store.lookupIdentity({ dev: stat.dev, ino: stat.ino, birthNs: stat.birthNs });
	}

	/** Notes that an object is under a name; gives it an id when the history has none. */
	async meet(stat: FileStat, name: Name): Promise<SeenObject> {
		const object = (await this.identify(stat)) ?? unknownObject(stat);
		const seen = this.note(object, stat);
		if (!seen.names.some((known) => known.dir === name.dir && known.name === name.name)) {
			seen.names.push({ dir: name.dir, name: name.name });
		}
		this.present.entries.set(entryKey(name.dir, name.name), { dir: name.dir, name: name.name, object });
		return seen;
	}

	meetStored(object: ObjectId, stat: FileStat, stored: StoredPlace): void {
		const seen = this.note(object, stat);
		if (!seen.stored.some(({ place }) => place === stored.place)) {
			seen.stored.push(stored);
		}
	}

	noteClosed(path: ByteString): void {
		this.present.closed.push({ path });
	}

	/** Where a directory is (in the project, or left in staging), or null when it can't be found. */
	directory(object: ObjectId): Promise<Place | null> {
		return this.anything(object);
	}

	/** Looks for an object of any kind under its last known name. Other names it may have are met as entries. */
	async lastName(object: ObjectId): Promise<void> {
		await this.anything(object);
		const binding = await this.binding(object);
		if (binding?.parent != null && binding.name !== "" && !this.present.objects.has(object)) {
			this.present.lastNames.set(object, { dir: binding.parent, name: binding.name });
		}
	}

	private anything(object: ObjectId): Promise<Place | null> {
		if (object === ROOT_OBJECT) {
			return Promise.resolve({ root: roots.project, path: "" });
		}
		let known = this.found.get(object);
		if (known === undefined) {
			known = this.find(object);
			this.found.set(object, known);
		}
		return known;
	}

	private async find(object: ObjectId): Promise<Place | null> {
		const seen = this.present.objects.get(object);
		const staged = seen?.names.length === 0 ? seen.stored[0] : undefined;
		if (staged !== undefined && seen !== undefined && (seen.stat.mode & S_IFMT) === S_IFDIR) {
			return { root: roots.storePlain, path: staged.place };
		}
		const binding = await this.binding(object);
		if (binding === null) {
			return this.knownPlace(object);
		}
		if (await this.isInLoop(object)) {
			return null;
		}
		const named = await this.byName(object, binding);
		// A file that was met under another name, or lies in the store, needs no search.
		if (named !== null || (this.present.objects.has(object) && (binding.mode & S_IFMT) !== S_IFDIR)) {
			return named;
		}
		return this.byHandle(object, binding);
	}

	/** A loop can only come from damage. Each level waits for its parent, so it must be found before. */
	private async isInLoop(object: ObjectId): Promise<boolean> {
		const above = new Set<ObjectId>();
		for (let at: ObjectId | null = object; at !== null && at !== ROOT_OBJECT; ) {
			if (above.has(at)) {
				return true;
			}
			above.add(at);
			at = (await this.binding(at))?.parent ?? null;
		}
		return false;
	}

	/** Met under a name while looking at something else, though the history does not know it. */
	private async knownPlace(object: ObjectId): Promise<Place | null> {
		const name = this.present.objects.get(object)?.names[0];
		const parent = name === undefined ? null : await this.directory(name.dir);
		return name === undefined || parent === null ? null : { root: parent.root, path: joinPath(parent.path, name.name) };
	}

	private async byName(object: ObjectId, binding: Binding): Promise<Place | null> {
		if (binding.parent === null || binding.parent === object || binding.name === "") {
			return null;
		}
		const parent = await this.directory(binding.parent);
		if (parent === null) {
			return null;
		}
		const place: Place = { root: parent.root, path: joinPath(parent.path, binding.name) };
		const stat = await this.statOrNull(place);
		if (stat === null || (await this.identify(stat)) !== object) {
			return null;
		}
		await this.meet(stat, { dir: binding.parent, name: binding.name });
		return place;
	}

	private async byHandle(object: ObjectId, binding: Binding): Promise<Place | null> {
		if (binding.handle === "") {
			return null;
		}
		let path: ByteString;
		try {
			path = await this.fsop.openHandle(roots.project, binding.handle);
		} catch (error) {
			// Gone, outside the project, or not allowed: then it is not to be found.
			if (error instanceof EngineError) {
				return null;
			}
			throw error;
		}
		const place: Place = { root: roots.project, path };
		const stat = await this.statOrNull(place);
		if (stat === null || path === "" || (await this.identify(stat)) !== object) {
			return null;
		}
		const parent = await this.meetPath(path.slice(0, Math.max(0, path.lastIndexOf("/"))));
		if (parent === null) {
			return null;
		}
		const seen = await this.meet(stat, { dir: parent, name: path.slice(path.lastIndexOf("/") + 1) });
		// When the journal has the end of its last known name, this is a further link of it.
		seen.strayed = !this.history
			.entriesOf(object)
			.some(({ dir, name }) => dir === binding.parent && name === binding.name);
		return place;
	}

	/** Notes every folder of a path; returns the object of the last. */
	private async meetPath(path: ByteString): Promise<ObjectId | null> {
		let dir = ROOT_OBJECT;
		let at = "";
		for (const name of path === "" ? [] : path.split("/")) {
			at = joinPath(at, name);
			const stat = await this.statOrNull({ root: roots.project, path: at });
			if (stat === null || (stat.mode & S_IFMT) !== S_IFDIR) {
				return null;
			}
			dir = (await this.meet(stat, { dir, name })).object;
		}
		return dir;
	}

	private async statOrNull(place: Place): Promise<FileStat | null> {
		try {
			return await this.fsop.statIfPresent(place, { xattrs: true });
		} catch (error) {
			if (error instanceof EngineError && (error.code === "EACCES" || error.code === "ELOOP")) {
				if (error.code === "EACCES") {
					this.noteClosed(place.path);
				}
				return null;
			}
			throw error;
		}
	}

	private note(object: ObjectId, stat: FileStat): SeenObject {
		let seen = this.present.objects.get(object);
		if (seen === undefined) {
			seen = { object, stat, names: [], stored: [] };
			this.present.objects.set(object, seen);
		}
		return seen;
	}
}
