/**
 * Looks at what a plan needs to know of the present: the entries and objects that have targets, and the folders above them.
 * It looks behind the mount (roots `project` and `store-plain`), so looking changes nothing and meets no cache. All stats
 * are under way at once; fsop executes them in order.
 */
import { roots } from "../daemon/project-context.js";
import { type FileStat, type Fsop, isAbsent, type Place, S_IFDIR, S_IFMT, S_IFREG } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import type { ByteString, ObjectId } from "../store/records.js";
import type { HistoryStore } from "../store/store.js";
import { compareBytes } from "./compare-bytes.js";
import type { History } from "./history.js";
import { Locator } from "./paths.js";
import { presentDirectory, presentEntry } from "./target-tree.js";
import {
	type DataTarget,
	type EntryTarget,
	entryKey,
	type Name,
	type Present,
	ROOT_OBJECT,
	type SeenObject,
	type StepPlace,
	type StoredPlace,
	type Targets,
} from "./types.js";

export interface PresentRequest {
	store: HistoryStore;
	fsop: Fsop;
	targets: Targets;
	history: History;
	/** Folders below the store in which an interrupted rewind may have left objects. */
	stagingFolders: ByteString[];
	/** Folders that must go are looked into all the way down: what others have in them may have to go too. */
	wholeFolders: boolean;
	/** Permissions as they were before this rewind opened folders for the moment. */
	opened: ReadonlyMap<ByteString, FileStat>;
	/** Bytes that can't be read for comparing count as the target's: the look after a rewind, which has just written them. */
	trustUnreadable: boolean;
}

export function lookAtPresent(request: PresentRequest): Promise<Present> {
	return new PresentLooker(request).look();
}

class PresentLooker {
	private readonly request: PresentRequest;
	private readonly present: Present = {
		entries: new Map(),
		objects: new Map(),
		lastNames: new Map(),
		listings: new Map(),
		closed: [],
		gonePlaces: new Map(),
	};
	private readonly locator: Locator;
	private readonly wanted = new Set<ObjectId>();
	private readonly places = new Map<ObjectId, StoredPlace[]>();

	constructor(request: PresentRequest) {
		this.request = request;
		this.locator = new Locator(request.store, request.fsop, request.history, this.present);
		for (const { object } of request.targets.entries.values()) {
			if (object !== null) {
				this.wanted.add(object);
			}
		}
	}

	async look(): Promise<Present> {
		const { targets } = this.request;
		await this.locator.start();
		this.collectPlaces();
		await this.lookIntoStaging();
		const entries = [...targets.entries.values()];
		await Promise.all(entries.map((target) => this.lookAtEntry(target)));
		const objects = new Set([...this.wanted, ...targets.attrs.keys(), ...targets.data.keys()]);
		await Promise.all([...objects].map((object) => this.lookAtObject(object)));
		await this.lookAtOthersRemovals();
		await this.lookIntoFolders(entries);
		await this.lookAtContents();
		await Promise.all([...targets.data.values()].map((target) => this.lookAtBytes(target)));
		this.forgetOpening();
		return this.present;
	}

	private forgetOpening(): void {
		for (const seen of this.present.objects.values()) {
			const place = this.request.opened.size > 0 ? placeOfSeen(this.present, seen) : null;
			const before = place?.root === "mount" ? this.request.opened.get(place.path) : undefined;
			if (before !== undefined && before.ino === seen.stat.ino) {
				seen.stat = { ...seen.stat, mode: before.mode };
				seen.opened = true;
			}
		}
	}

	// --- entries ---

	private async lookAtEntry({ dir, name }: Name): Promise<void> {
		const key = entryKey(dir, name);
		if (this.present.entries.has(key)) {
			return;
		}
		this.present.entries.set(key, { dir, name, object: null });
		const folder = await this.locator.directory(dir);
		if (folder === null) {
			this.noteUnknown(key);
			return;
		}
		const place: Place = { root: folder.root, path: folder.path === "" ? name : `${folder.path}/${name}` };
		const stat = await this.stat(place);
		if (stat === null) {
			this.noteUnknown(key);
			return;
		}
		await this.locator.meet(stat, { dir, name });
	}

	/** Nothing was found; where permissions forbade some look that doesn't mean that nothing is there. */
	private noteUnknown(key: string): void {
		const entry = this.present.entries.get(key);
		if (entry !== undefined && this.present.closed.length > 0) {
			entry.closed = true;
		}
	}

	/** null when nothing is there. What can't be looked at because of permissions is reported in `closed`. */
	private async stat(place: Place): Promise<FileStat | null> {
		try {
			return await this.request.fsop.statIfPresent(place, { xattrs: true });
		} catch (error) {
			if (error instanceof EngineError && (error.code === "EACCES" || error.code === "ELOOP")) {
				if (error.code === "EACCES") {
					this.locator.noteClosed(place.path);
				}
				return null;
			}
			throw error;
		}
	}

	// --- objects ---

	/** Links in the store, as the records of this stretch of history have them. */
	private collectPlaces(): void {
		for (const record of this.request.history.records) {
			if (record.type === "preserved") {
				const places = this.places.get(record.object) ?? [];
				places.push({ place: record.place, recent: true });
				this.places.set(record.object, places);
			} else if (record.type === "dropped") {
				const places = this.places.get(record.object);
				this.places.set(
					record.object,
					(places ?? []).filter(({ place }) => place !== record.place),
				);
			}
		}
	}

	private async lookAtObject(object: ObjectId): Promise<void> {
		if (object === ROOT_OBJECT) {
			return;
		}
		const binding = await this.locator.binding(object);
		const places = [...(this.places.get(object) ?? [])];
		for (const place of binding === null ? [] : [binding.place, ...binding.morePlaces]) {
			if (place !== null && !places.some((known) => known.place === place)) {
				places.push({ place, recent: false });
			}
		}
		await Promise.all(
			places.map(async (stored) => {
				const stat = await this.stat({ root: roots.storePlain, path: stored.place });
				if (stat !== null && (await this.locator.identify(stat)) === object) {
					this.locator.meetStored(object, stat, stored);
				} else if (stored.recent) {
					this.present.gonePlaces?.set(object, stored.place);
				}
			}),
		);
		await this.locator.lastName(object);
	}

	private async lookIntoStaging(): Promise<void> {
		const { fsop } = this.request;
		for (const folder of this.request.stagingFolders) {
			let names: ByteString[];
			try {
				names = await fsop.list({ root: roots.storePlain, path: folder });
			} catch (error) {
				if (isAbsent(error)) {
					continue;
				}
				throw error;
			}
			await Promise.all(
				names.map(async (name) => {
					const place = `${folder}/${name}`;
					const stat = await this.stat({ root: roots.storePlain, path: place });
					const object = stat === null ? null : await this.locator.identify(stat);
					if (stat !== null && object !== null) {
						this.locator.meetStored(object, stat, { place, recent: true });
					}
				}),
			);
		}
	}

	/** Names that others removed from objects which the turn had changed: they may have to come back. */
	private async lookAtOthersRemovals(): Promise<void> {
		const { targets, history } = this.request;
		const names: Name[] = [];
		for (const object of new Set([...targets.attrs.keys(), ...targets.data.keys()])) {
			names.push(...history.entriesOf(object));
		}
		for (const target of targets.entries.values()) {
			names.push(...history.entriesOf(target.dir));
		}
		await Promise.all(names.map((name) => this.lookAtEntry(name)));
	}

	// --- folders that may have to go ---

	private async lookIntoFolders(entries: EntryTarget[]): Promise<void> {
		await Promise.all(
			entries.map(async (target) => {
				const object = this.present.entries.get(entryKey(target.dir, target.name))?.object ?? null;
				if (object !== null && object !== target.object && !this.wanted.has(object)) {
					await this.lookIntoFolder(object);
				}
			}),
		);
	}

	private async lookIntoFolder(object: ObjectId): Promise<void> {
		const seen = this.present.objects.get(object);
		if (seen === undefined || (seen.stat.mode & S_IFMT) !== S_IFDIR || this.present.listings.has(object)) {
			return;
		}
		this.present.listings.set(object, []);
		const place = await this.locator.directory(object);
		if (place === null) {
			return;
		}
		let names: ByteString[];
		try {
			names = await this.request.fsop.list(place);
		} catch (error) {
			if (error instanceof EngineError && error.code === "EACCES") {
				this.locator.noteClosed(place.path);
				return;
			}
			throw error;
		}
		this.present.listings.set(object, names);
		if (this.request.wholeFolders) {
			await Promise.all(
				names.map(async (name) => {
					await this.lookAtEntry({ dir: object, name });
					const below = this.present.entries.get(entryKey(object, name))?.object;
					if (below != null && !this.wanted.has(below)) {
						await this.lookIntoFolder(below);
					}
				}),
			);
		}
	}

	// --- bytes ---

	private async lookAtBytes(target: DataTarget): Promise<void> {
		const seen = this.present.objects.get(target.object);
		const place = seen === undefined ? null : await this.placeOf(seen);
		if (seen === undefined || place === null || (seen.stat.mode & S_IFMT) !== S_IFREG) {
			return;
		}
		seen.sameBytes = await compareBytes(this.request.fsop, place, target, this.request.trustUnreadable);
	}

	/** Files that took another's place but say the same: an editor's or a checkout's copy of what was there before. */
	private async lookAtContents(): Promise<void> {
		const { targets, history, fsop } = this.request;
		await Promise.all(
			[...targets.entries].map(async ([key, target]) => {
				const entry = this.present.entries.get(key);
				const records = history.entryRecords(key);
				if (target.object === null || entry?.object == null || entry.object === target.object) {
					return;
				}
				const there = this.present.objects.get(entry.object);
				const isFile = there !== undefined && (there.stat.mode & S_IFMT) === S_IFREG;
				// Only where it decides about a conflict; comparing is reading.
				if (!isFile || records.length < 2) {
					return;
				}
				const place = await this.placeOf(there);
				const before = this.present.objects.get(target.object);
				const data = targets.data.get(target.object);
				if (place === null) {
					return;
				}
				if (data !== undefined) {
					entry.sameContent =
						data.complete &&
						data.size === there.stat.size &&
						(await compareBytes(fsop, place, data, false)).every((same) => same);
					return;
				}
				const stored = before === undefined ? null : await this.placeOf(before);
				if (before !== undefined && stored !== null && before.stat.size === there.stat.size) {
					entry.sameContent = await this.isEqual(stored, place, before.stat.size);
				}
			}),
		);
	}

	private async isEqual(a: Place, b: Place, length: bigint): Promise<boolean> {
		try {
			return await this.request.fsop.equal(a, 0n, b, 0n, length);
		} catch (error) {
			if (error instanceof EngineError) {
				return false;
			}
			throw error;
		}
	}

	private async placeOf(seen: SeenObject): Promise<Place | null> {
		const name = seen.names[0];
		if (name !== undefined) {
			const folder = await this.locator.directory(name.dir);
			if (folder !== null) {
				return { root: folder.root, path: folder.path === "" ? name.name : `${folder.path}/${name.name}` };
			}
		}
		const stored = seen.stored[0];
		return stored === undefined ? null : { root: roots.storePlain, path: stored.place };
	}
}

function placeOfSeen(present: Present, seen: SeenObject): StepPlace | null {
	const name = seen.names[0];
	return name === undefined ? presentDirectory(present, seen.object) : presentEntry(present, name);
}
