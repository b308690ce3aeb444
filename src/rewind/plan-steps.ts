/** The steps of a plan, once it is decided what must be where. Pure; called by `plan.ts` only. */
import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from "../engine/fsop.js";
import type { AttrsRecord, ByteString, ObjectId } from "../store/records.js";
import { joinPath } from "../text/byte-string.js";
import { attributesDiffer } from "./conflicts.js";
import { type Decisions, isInTree } from "./plan.js";
import { below, depthOf, presentDirectory, presentEntry } from "./target-tree.js";
import {
	type DataTarget,
	type EntryTarget,
	entryKey,
	type Name,
	type Piece,
	type Plan,
	ROOT_OBJECT,
	type SeenObject,
	type Step,
	type StepPlace,
	type WantedAttrs,
} from "./types.js";

/** The owner's permission to list, search and change a folder. */
const OPEN_DIRECTORY = 0o700;
/** The owner's permission to change a file's bytes and xattrs. */
const OPEN_FILE = 0o600;

/** What the steps so far have made of one object. */
interface Moving {
	/** Names to give it, in order. */
	adds: EntryTarget[];
	/** How many of its present names may be moved instead of being removed. */
	movable: number;
	/** Out of the tree: in staging, or in the store. Taken from the front. */
	held: StepPlace[];
	/** Links in the store from before the first selected touch: the last resort. */
	spare: StepPlace[];
	/** It has a name in the tree that stays, so more names are links to it. */
	linkFrom: Name | null;
}

/** All bytes come before all attributes: so the latter can be looked at and set many at a time. */
interface InPlaceSteps {
	bytes: Step[];
	attrs: Step[];
}

export class StepBuilder {
	private readonly given: Decisions;
	private readonly moving = new Map<ObjectId, Moving>();
	private readonly done = new Set<string>();
	private readonly freed = new Set<string>();
	/** Folders in which names were changed, or which were moved: their attributes are looked after at the end. */
	private readonly disturbed = new Set<ObjectId>();
	private opened = new Set<ObjectId>();
	/** Folders above what is changed in place. */
	private readonly entered = new Set<ObjectId>();
	private readonly made = new Map<ObjectId, AttrsRecord>();
	private readonly unmade = new Set<ObjectId>();
	private readonly restored = new Set<ByteString>();
	private readonly gone = new Set<ByteString>();
	private readonly sources: Piece[] = [];
	private readonly damaged: ByteString[] = [];
	private staged = 0;

	constructor(given: Decisions) {
		this.given = given;
	}

	build(): Omit<Plan, "conflicts" | "skipped" | "kept" | "staging" | "closed"> {
		const early = this.changeBeforeDetaching();
		const detached = this.detach();
		const attached = this.attach();
		const inPlace = this.changeInPlace();
		const directories = this.finishDirectories();
		const opening = this.openUp();
		return {
			steps: [...opening, ...early, ...detached, ...attached, ...inPlace, ...directories],
			restored: [...this.restored].sort(),
			deleted: [...this.gone].filter((path) => !this.restored.has(path)).sort(),
			sources: this.sources,
			damaged: this.damaged,
		};
	}

	// --- names off ---

	private detach(): Step[] {
		const { given } = this;
		const leaving = [...given.entries.values()]
			.filter((target) => {
				const object = this.presentAt(target);
				return object !== null && object !== target.object && !given.kept.has(object);
			})
			.map((target) => ({ target, at: presentEntry(given.present, target) }))
			.filter((item): item is { target: EntryTarget; at: StepPlace } => item.at !== null)
			.sort((a, b) => depthOf(b.at.path) - depthOf(a.at.path));
		return leaving.map(({ target, at }) => this.detachOne(target, at));
	}

	private detachOne(target: EntryTarget, at: StepPlace): Step {
		const object = this.presentAt(target) as ObjectId;
		const seen = this.given.present.objects.get(object);
		const isDirectory = seen !== undefined && (seen.stat.mode & S_IFMT) === S_IFDIR;
		const moving = this.movingOf(object);
		const path = at.root === "mount" ? at.path : joinPath(target.parentPath, target.name);
		this.disturbed.add(target.dir);
		this.freed.add(entryKey(target.dir, target.name));
		this.gone.add(path);
		if (moving.movable > 0) {
			moving.movable--;
			if (isDirectory) {
				this.disturbed.add(object);
			}
			const straight = moving.adds.find((name) => !this.isDone(name) && this.isFree(name));
			if (straight !== undefined) {
				const to = this.finalPlace(straight);
				this.arrive(object, straight, to);
				return { do: "move", path: to.path, object, from: at, to };
			}
			const to: StepPlace = { root: "door", path: `${this.given.staging}/${object}.${this.staged++}` };
			moving.held.unshift(to);
			return { do: "move", path, object, from: at, to };
		}
		return isDirectory ? { do: "rmdir", path, object, at } : { do: "unlink", path, object, at };
	}

	/** A name that can be taken at once: nothing is there, and its folder stays where it is. */
	private isFree(name: EntryTarget): boolean {
		const key = entryKey(name.dir, name.name);
		return (this.presentAt(name) === null || this.freed.has(key)) && this.given.tree.isStable(name.dir);
	}

	// --- names on ---

	private attach(): Step[] {
		const waiting = [...this.given.entries.values()]
			.filter((target) => target.object !== null && this.presentAt(target) !== target.object && !this.isDone(target))
			.map((target) => ({ target, to: this.finalPlace(target) }))
			.sort((a, b) => depthOf(a.to.path) - depthOf(b.to.path));
		const steps: Step[] = [];
		const links: Step[] = [];
		for (const { target, to } of waiting) {
			const object = target.object as ObjectId;
			if (this.unmade.has(target.dir)) {
				this.unmade.add(object);
				this.given.skip(to.path, "its folder could not be made again");
				continue;
			}
			const moving = this.movingOf(object);
			const held = moving.held.shift();
			if (held !== undefined) {
				steps.push({ do: "move", path: to.path, object, from: held, to });
				this.arrive(object, target, to);
			} else if (moving.linkFrom !== null) {
				// Links come last: the name that they are made from may be attached later than this one.
				links.push({ do: "link", path: to.path, object, from: this.finalPlace(moving.linkFrom), to });
				this.arrive(object, target, to);
			} else {
				const spare = moving.spare.shift();
				const step: Step | null =
					spare === undefined ? this.make(target, to) : { do: "move", path: to.path, object, from: spare, to };
				if (step !== null) {
					steps.push(step);
					this.arrive(object, target, to);
				}
			}
		}
		return [...steps, ...links];
	}

	private make(target: EntryTarget, at: StepPlace): Step | null {
		const object = target.object as ObjectId;
		const attrs = this.given.attrs.get(object);
		if (attrs === undefined) {
			return this.giveUp(object, at, "it is gone, and its attributes were not kept");
		}
		let data: DataTarget | null = null;
		if ((attrs.mode & S_IFMT) === S_IFREG && attrs.size > 0n) {
			data = this.given.data.get(object) ?? null;
			if (data === null || !data.complete) {
				return this.giveUp(object, at, "it is gone, and its bytes were not kept");
			}
			this.sources.push(...data.pieces.filter((piece) => piece.kind !== "hole"));
		}
		this.made.set(object, attrs);
		return { do: "make", path: at.path, object, at, depth: depthOf(at.path), attrs, data };
	}

	private giveUp(object: ObjectId, at: StepPlace, reason: string): null {
		this.unmade.add(object);
		const place = this.given.present.gonePlaces?.get(object);
		if (place === undefined) {
			this.given.skip(at.path, reason);
		} else {
			this.damaged.push(place);
		}
		return null;
	}

	private arrive(object: ObjectId, target: EntryTarget, to: StepPlace): void {
		this.done.add(entryKey(target.dir, target.name));
		this.disturbed.add(target.dir);
		this.restored.add(to.path);
		const moving = this.movingOf(object);
		moving.linkFrom ??= target;
	}

	// --- bytes and attributes in place ---

	/** Objects of which only names that nobody has met will be left: they are reached by a name that is about to go. */
	private changeBeforeDetaching(): Step[] {
		const { present } = this.given;
		const steps: InPlaceSteps = { bytes: [], attrs: [] };
		for (const seen of this.changedObjects()) {
			const name = seen.names[0];
			const at = name === undefined || this.finalName(seen.object) !== undefined ? null : presentEntry(present, name);
			if (at !== null) {
				this.changeObject(seen, at, steps);
			}
		}
		return [...steps.bytes, ...steps.attrs];
	}

	private changeInPlace(): Step[] {
		const steps: InPlaceSteps = { bytes: [], attrs: [] };
		for (const seen of this.changedObjects()) {
			const name = this.finalName(seen.object);
			const stored = seen.stored[0];
			if (name !== undefined && !this.unmade.has(seen.object)) {
				this.changeObject(seen, this.finalPlace(name), steps);
			} else if (name === undefined && seen.names.length === 0 && stored !== undefined) {
				// It has names in the tree that nobody has met; a link of it in the store leads to the same inode.
				this.changeObject(seen, { root: "door", path: stored.place }, steps);
			}
		}
		for (const [object, attrs] of this.made) {
			const name = this.given.tree.wantedNames(object)[0];
			if ((attrs.mode & S_IFMT) !== S_IFDIR && name !== undefined) {
				const at = this.finalPlace(name);
				steps.attrs.push({ do: "attrs", path: at.path, object, at, want: wanted(attrs) });
			}
		}
		return [...steps.bytes, ...steps.attrs];
	}

	private finalName(object: ObjectId): Name | undefined {
		return this.given.tree.wantedNames(object)[0] ?? this.given.tree.keptNames(object)[0];
	}

	/** Present objects with targets that are no directories. */
	private *changedObjects(): Generator<SeenObject> {
		const { attrs, data, present, tree } = this.given;
		for (const object of new Set([...attrs.keys(), ...data.keys()])) {
			const seen = present.objects.get(object);
			if (seen !== undefined && (seen.stat.mode & S_IFMT) !== S_IFDIR && isInTree(object, tree, present)) {
				yield seen;
			}
		}
	}

	private changeObject(seen: SeenObject, at: StepPlace, steps: InPlaceSteps): void {
		const { object, stat } = seen;
		const attrs = this.given.attrs.get(object);
		const bytes = this.bytesStep(seen, at);
		const differs = attrs !== undefined && (attributesDiffer(attrs, stat) || attrs.mtimeNs !== stat.mtimeNs);
		if (bytes === null && !differs && seen.opened !== true) {
			return;
		}
		const path = at.root === "mount" ? at.path : (attrs?.path ?? at.path);
		this.restored.add(path);
		for (const name of [...seen.names, ...this.given.tree.wantedNames(object)]) {
			this.entered.add(name.dir);
		}
		const isFile = (stat.mode & S_IFMT) === S_IFREG;
		if (isFile && this.isClosed(stat, OPEN_FILE)) {
			steps.bytes.push({ do: "open-up", path, at, mode: (stat.mode | OPEN_FILE) & 0o7777 });
		}
		if (bytes !== null) {
			steps.bytes.push({ ...bytes, path });
		}
		const want = wanted(attrs ?? stat);
		if (this.given.bytesLost.has(object)) {
			want.mtimeNs = stat.mtimeNs;
		}
		steps.attrs.push({ do: "attrs", path, object, at, want });
	}

	private bytesStep(seen: SeenObject, at: StepPlace): Step | null {
		const { object, stat } = seen;
		if ((stat.mode & S_IFMT) !== S_IFREG || this.given.bytesLost.has(object)) {
			return null;
		}
		const data = this.given.data.get(object);
		const attrs = this.given.attrs.get(object);
		let size: bigint;
		let pieces: Piece[] = [];
		if (data !== undefined) {
			size = data.size;
			pieces = data.pieces.filter((_, index) => seen.sameBytes?.[index] !== true);
		} else if (attrs !== undefined && !this.given.hasForeignBytes(object, attrs.seq)) {
			// Only attributes were touched: a truncate that made it longer.
			size = attrs.size;
		} else {
			return null;
		}
		if (pieces.length === 0 && size === stat.size) {
			return null;
		}
		this.sources.push(...pieces.filter((piece) => piece.kind !== "hole"));
		return { do: "bytes", path: at.path, object, at, presentSize: stat.size, size, pieces };
	}

	// --- directories last ---

	private finishDirectories(): Step[] {
		const { attrs, present, tree } = this.given;
		this.opened = new Set(this.closedOnTheWay());
		for (const seen of present.objects.values()) {
			if (seen.opened === true) {
				this.opened.add(seen.object);
			}
		}
		const candidates = new Set([...this.disturbed, ...this.opened, ...this.made.keys()]);
		for (const object of attrs.keys()) {
			candidates.add(object);
		}
		const steps: { depth: number; step: Step }[] = [];
		for (const object of candidates) {
			const path = this.finalDirectory(object);
			const record = tree.hasDirectory(object) ? (this.made.get(object) ?? attrs.get(object)) : undefined;
			const stat = present.objects.get(object)?.stat;
			const mode = record?.mode ?? stat?.mode ?? 0;
			if (path === null || (mode & S_IFMT) !== S_IFDIR || this.unmade.has(object)) {
				continue;
			}
			const want = this.wantedOfDirectory(object, record);
			if (want === null) {
				continue;
			}
			const untouched = stat !== undefined && !this.disturbed.has(object) && !this.opened.has(object);
			const differs = stat === undefined || attributesDiffer({ ...want, mode: withKind(want.mode, mode) }, stat);
			if (untouched && !differs && !this.made.has(object) && want.mtimeNs === stat.mtimeNs) {
				continue;
			}
			if (differs) {
				this.restored.add(path);
			}
			const at: StepPlace = { root: "mount", path };
			steps.push({ depth: depthOf(path), step: { do: "attrs", path, object, at, want } });
		}
		return steps.sort((a, b) => b.depth - a.depth).map(({ step }) => step);
	}

	private wantedOfDirectory(object: ObjectId, record: AttrsRecord | undefined): WantedAttrs | null {
		const stat = this.given.present.objects.get(object)?.stat;
		if (record === undefined) {
			return stat === undefined ? null : wanted(stat);
		}
		const want = wanted(record);
		if (stat !== undefined && this.given.hasForeignEntries(object, record.seq)) {
			want.mtimeNs = stat.mtimeNs;
		}
		return want;
	}

	/** Where a directory is at the end: in the target tree, or staying because others have something in it. */
	private finalDirectory(object: ObjectId): ByteString | null {
		const { tree, present, kept } = this.given;
		const path = tree.directoryPath(object);
		if (path !== null || !kept.has(object)) {
			return path;
		}
		const name = present.objects.get(object)?.names[0];
		const parent = name === undefined ? null : this.finalDirectory(name.dir);
		return name === undefined || parent === null ? null : joinPath(parent, name.name);
	}

	// --- permissions for the time being ---

	/** Directories that an ordinary user's steps can't act in, although they own them; outermost first. */
	private openUp(): Step[] {
		return this.closedOnTheWay()
			.map((object) => ({ object, at: presentDirectory(this.given.present, object) }))
			.filter((item): item is { object: ObjectId; at: StepPlace } => item.at !== null)
			.sort((a, b) => depthOf(a.at.path) - depthOf(b.at.path))
			.map(({ object, at }) => {
				const mode = this.given.present.objects.get(object)?.stat.mode ?? 0;
				return { do: "open-up", path: at.path, at, mode: (mode | OPEN_DIRECTORY) & 0o7777 };
			});
	}

	private closedOnTheWay(): ObjectId[] {
		if (this.given.uid === 0) {
			return [];
		}
		const onTheWay = new Set<ObjectId>();
		const add = (start: ObjectId): void => {
			for (let at: ObjectId | undefined = start; at !== undefined && !onTheWay.has(at); ) {
				onTheWay.add(at);
				at = at === ROOT_OBJECT ? undefined : this.given.present.objects.get(at)?.names[0]?.dir;
			}
		};
		for (const object of this.disturbed) {
			add(object);
		}
		for (const object of this.entered) {
			add(object);
		}
		return [...onTheWay].filter((object) => {
			const seen = this.given.present.objects.get(object);
			return seen !== undefined && this.isClosed(seen.stat, OPEN_DIRECTORY);
		});
	}

	private isClosed(stat: { mode: number; uid: number }, needed: number): boolean {
		const { uid } = this.given;
		return uid !== 0 && stat.uid === uid && (stat.mode & needed) !== needed;
	}

	// --- small questions ---

	private movingOf(object: ObjectId): Moving {
		const known = this.moving.get(object);
		if (known !== undefined) {
			return known;
		}
		const { tree, present } = this.given;
		const seen = present.objects.get(object);
		const adds = tree.wantedNames(object).filter((target) => this.presentAt(target) !== object);
		const isDirectory = seen !== undefined && (seen.stat.mode & S_IFMT) === S_IFDIR;
		const places = seen?.stored ?? [];
		const door = (recent: boolean): StepPlace[] =>
			places.filter((place) => place.recent === recent).map(({ place }) => ({ root: "door", path: place }));
		const held = door(true);
		const moving: Moving = {
			adds,
			held,
			spare: door(false),
			movable: isDirectory ? Math.min(1, adds.length) : Math.max(0, adds.length - held.length),
			linkFrom: tree.keptNames(object)[0] ?? null,
		};
		this.moving.set(object, moving);
		return moving;
	}

	private presentAt(name: Name): ObjectId | null {
		return this.given.present.entries.get(entryKey(name.dir, name.name))?.object ?? null;
	}

	private isDone(name: Name): boolean {
		return this.done.has(entryKey(name.dir, name.name));
	}

	/** Where a name is when all names are in place. Only for names in directories that are in the tree. */
	private finalPlace(name: Name): StepPlace {
		const path = this.given.tree.directoryPath(name.dir);
		if (path === null) {
			throw new Error(`directory ${name.dir} is not in the tree`);
		}
		return below({ root: "mount", path }, name.name);
	}
}

function wanted(from: Pick<AttrsRecord, "mode" | "uid" | "gid" | "mtimeNs" | "xattrs">): WantedAttrs {
	const { mode, uid, gid, mtimeNs, xattrs } = from;
	return { mode: (mode & S_IFMT) === S_IFLNK ? mode : mode & 0o7777, uid, gid, mtimeNs, xattrs };
}

function withKind(permissions: number, like: number): number {
	return (permissions & 0o7777) | (like & S_IFMT);
}
