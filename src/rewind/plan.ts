/**
 * The plan of a rewind: from what must be (targets) and what is (present) to conflicts and to the list of steps that `--dry-run`
 * shows and `apply` executes. A pure function.
 *
 * Order (design: §8): names that must change are taken off, deepest first, what is still wanted into staging; then everything
 * is put where it belongs, parents first; then bytes in place, attributes, and folders' attributes and times, deepest first.
 */
import { S_IFDIR, S_IFMT, S_IFREG } from "../engine/fsop.js";
import type { AttrsRecord, ByteString, ObjectId } from "../store/records.js";
import { joinPath } from "../text/byte-string.js";
import { attributesDiffer, ConflictFinder, isIgnoredConflict } from "./conflicts.js";
import type { History } from "./history.js";
import { StepBuilder } from "./plan-steps.js";
import { collectTargets, isForeign } from "./target.js";
import { presentEntry, TargetTree } from "./target-tree.js";
import {
	type DataTarget,
	type EntryKey,
	type EntryTarget,
	entryKey,
	isUnknownObject,
	type Name,
	type PathReason,
	type Plan,
	type Present,
	type SeenObject,
	type Selection,
	type Targets,
} from "./types.js";

export interface PlanInput {
	targets: Targets;
	history: History;
	selection: Selection;
	present: Present;
	/** Conflicts are listed, but the steps put those paths back too. */
	overwrite: boolean;
	/** The user id whose permissions the steps have; 0: permissions hinder nothing. */
	uid: number;
	/** Folder below the store for what is between two places. */
	staging: ByteString;
}

export function planRewind(input: PlanInput): Plan {
	return new Planner(input).plan();
}

/** Everything a step builder needs to know of the decisions. */
export interface Decisions {
	entries: Map<EntryKey, EntryTarget>;
	attrs: Map<ObjectId, AttrsRecord>;
	data: Map<ObjectId, DataTarget>;
	tree: TargetTree;
	present: Present;
	/** Directories that can't go because others have something in them. */
	kept: Set<ObjectId>;
	/** Objects whose bytes can't be put back: they and their times stay. */
	bytesLost: Set<ObjectId>;
	uid: number;
	staging: ByteString;
	/** Others have changed entries of this directory after the turn first did: its times are no longer the turn's alone. */
	hasForeignEntries: (dir: ObjectId, afterSeq: bigint) => boolean;
	/** Others have changed this object's bytes after that position. */
	hasForeignBytes: (object: ObjectId, afterSeq: bigint) => boolean;
	skip: (path: ByteString, reason: string) => void;
}

class Planner {
	private readonly input: PlanInput;
	private readonly present: Present;
	private readonly history: History;
	private readonly entries: Map<EntryKey, EntryTarget>;
	private readonly attrs: Map<ObjectId, AttrsRecord>;
	private readonly data: Map<ObjectId, DataTarget>;
	private tree: TargetTree;
	private readonly conflicts = new Map<ByteString, string>();
	private readonly skipped = new Map<ByteString, string>();
	private readonly foreignDirectories = new Map<ObjectId, bigint>();
	private everybodys: Targets | null = null;

	constructor(input: PlanInput) {
		this.input = input;
		this.present = input.present;
		this.history = input.history;
		// What can't be looked at can't be planned; an ordinary user's own closed folders are opened before the plan is final.
		this.entries = new Map(
			[...input.targets.entries].filter(([key]) => input.present.entries.get(key)?.closed !== true),
		);
		this.attrs = new Map(input.targets.attrs);
		this.data = new Map(input.targets.data);
		this.tree = new TargetTree(this.entries, this.present);
		for (const record of input.history.records) {
			if (record.type === "entry" && isForeign(record, input.selection)) {
				this.foreignDirectories.set(record.dir, record.seq);
			}
		}
	}

	plan(): Plan {
		this.bringBackWhatOthersRemoved();
		this.takeBackWhatOthersMoved();
		this.settleMissingParents();
		const kept = this.decideKeptDirectories();
		this.findConflicts(kept);
		const bytesLost = this.reportLost();
		const built = new StepBuilder({
			entries: this.entries,
			attrs: this.attrs,
			data: this.data,
			tree: this.tree,
			present: this.present,
			kept,
			bytesLost,
			uid: this.input.uid,
			staging: this.input.staging,
			hasForeignEntries: (dir, afterSeq) => (this.foreignDirectories.get(dir) ?? -1n) > afterSeq,
			hasForeignBytes: (object, afterSeq) => this.hasForeignBytes(object, afterSeq),
			skip: (path, reason) => this.skipped.set(path, reason),
		}).build();
		for (const { path } of this.present.closed) {
			this.skipped.set(path, "its permissions forbid to look into it");
		}
		return {
			...built,
			staging: this.input.staging,
			closed: this.present.closed.map(({ path }) => path),
			conflicts: toList(this.conflicts),
			skipped: toList(this.skipped),
			kept: [...kept].map((dir) => this.shownDirectory(dir)).sort(),
		};
	}

	// --- what must be: widened by what others removed ---

	/** The turn changed an object that somebody else deleted later. */
	private bringBackWhatOthersRemoved(): void {
		let widened = false;
		for (const [object, seq] of this.touchedObjects()) {
			if (this.isInTree(object) || !this.wasChanged(object)) {
				continue;
			}
			const removal =
				this.history
					.entriesOf(object)
					.find(
						(record) =>
							record.seq > seq &&
							isForeign(record, this.input.selection) &&
							!this.entries.has(entryKey(record.dir, record.name)),
					) ?? this.removalOutside(object, seq);
			if (removal === null) {
				continue;
			}
			this.addConflict(joinPath(removal.parentPath, removal.name), "deleted or moved away by somebody else since");
			if (this.input.overwrite) {
				this.entries.set(entryKey(removal.dir, removal.name), removal);
				this.takeEverybodysPreimage(object);
				widened = true;
			}
		}
		if (widened) {
			this.tree = new TargetTree(this.entries, this.present);
		}
	}

	/** A file that the turn changed is nowhere, although no record says that it went. null when it went as the turn's own. */
	private removalOutside(object: ObjectId, seq: bigint): EntryTarget | null {
		const attrs = this.attrs.get(object);
		const name = this.present.lastNames.get(object);
		const isTurns = this.history.keysMeaning(object).some((key) => {
			const target = this.entries.get(key);
			return target !== undefined && target.object !== object;
		});
		const mayBeClosed = this.present.closed.length > 0;
		if (isTurns || mayBeClosed || name === undefined || attrs === undefined || this.present.objects.has(object)) {
			return null;
		}
		const slash = attrs.path.lastIndexOf("/");
		const parentPath = slash < 0 ? "" : attrs.path.slice(0, slash);
		const isTaken = this.entries.has(entryKey(name.dir, name.name)) || this.presentAt(name) !== null;
		return isTaken ? null : { ...name, object, mode: attrs.mode, seq, parentPath };
	}

	/**
	 * Others have moved what the turn had moved: it must come back from where it is now. That name gets back what it meant before
	 * they did.
	 */
	private takeBackWhatOthersMoved(): void {
		if (!this.input.overwrite) {
			return;
		}
		let moved = false;
		for (const target of [...this.entries.values()]) {
			const seen = target.object === null ? undefined : this.present.objects.get(target.object);
			for (const name of seen?.names ?? []) {
				const key = entryKey(name.dir, name.name);
				const before = this.history
					.entryRecords(key)
					.find((record) => record.seq > target.seq && isForeign(record, this.input.selection));
				const isFolder = ((seen?.stat.mode ?? 0) & S_IFMT) === S_IFDIR;
				if (!this.entries.has(key) && (before !== undefined || seen?.strayed === true || isFolder)) {
					const object = before === undefined || before.object === target.object ? null : before.object;
					const { dir, name: last } = name;
					this.entries.set(key, { dir, name: last, object, mode: before?.mode ?? 0, seq: target.seq, parentPath: "" });
					moved = true;
				}
			}
		}
		if (moved) {
			this.tree = new TargetTree(this.entries, this.present);
		}
	}

	/** For a folder times alone are no change: what was done in it has targets of its own. */
	private wasChanged(object: ObjectId): boolean {
		const attrs = this.attrs.get(object);
		if (attrs === undefined || (attrs.mode & S_IFMT) !== S_IFDIR) {
			return true;
		}
		const last = this.history.attrsRecords(object).at(-1);
		return last !== undefined && attributesDiffer(attrs, last);
	}

	/** A target that is no tree: something must be in a directory which would not be there. */
	private settleMissingParents(): void {
		for (;;) {
			const orphans = [...this.entries.values()].filter(
				(target) => target.object !== null && !this.tree.hasDirectory(target.dir),
			);
			if (orphans.length === 0) {
				return;
			}
			let widened = false;
			for (const target of orphans) {
				this.addConflict(
					this.shownEntry(target),
					"its folder was removed by somebody else, or is not one of these turns'",
				);
				const parent = this.history.entriesOf(target.dir)[0];
				const key = parent === undefined ? null : entryKey(parent.dir, parent.name);
				if (this.input.overwrite && parent !== undefined && key !== null && !this.entries.has(key)) {
					this.entries.set(key, parent);
					this.takeEverybodysPreimage(target.dir);
					widened = true;
				}
			}
			if (!widened) {
				for (const target of orphans) {
					this.entries.delete(entryKey(target.dir, target.name));
					if (this.input.overwrite) {
						this.skipped.set(this.shownEntry(target), "its folder is gone and was not kept");
					}
				}
			}
			this.tree = new TargetTree(this.entries, this.present);
		}
	}

	/** For what is made again although nobody selected removed it: attributes and bytes as they were kept at its removal. */
	private takeEverybodysPreimage(object: ObjectId): void {
		this.everybodys ??= collectTargets(this.history.records, { ...this.input.selection, everybody: true });
		const attrs = this.everybodys.attrs.get(object);
		const data = this.everybodys.data.get(object);
		if (attrs !== undefined && !this.attrs.has(object)) {
			this.attrs.set(object, attrs);
		}
		if (data !== undefined && this.data.get(object)?.complete !== true) {
			this.data.set(object, data);
		}
	}

	// --- directories that must go but can't ---

	private decideKeptDirectories(): Set<ObjectId> {
		for (;;) {
			const memo = new Map<ObjectId, boolean>();
			const kept = new Set<ObjectId>();
			let purged = false;
			for (const target of this.differing()) {
				const object = this.vanishingDirectory(target);
				if (object === null || this.clears(object, memo)) {
					continue;
				}
				if (target.object !== null) {
					this.addConflict(this.shownEntry(target), "the folder that is there now holds files of somebody else");
					if (this.input.overwrite && this.purge(object, target.seq)) {
						purged = true;
						continue;
					}
					this.entries.delete(entryKey(target.dir, target.name));
					if (this.input.overwrite) {
						this.skipped.set(this.shownEntry(target), "the folder that is there now can't be emptied");
					}
					purged = true;
				}
				kept.add(object);
			}
			if (!purged) {
				return kept;
			}
			this.tree = new TargetTree(this.entries, this.present);
		}
	}

	/** The directory that is at this name now, must not be there, and is wanted nowhere else. */
	private vanishingDirectory(target: EntryTarget): ObjectId | null {
		const object = this.presentAt(target);
		const seen = object === null ? undefined : this.present.objects.get(object);
		if (object === null || seen === undefined || (seen.stat.mode & S_IFMT) !== S_IFDIR) {
			return null;
		}
		return this.tree.wantedNames(object).length === 0 ? object : null;
	}

	/** True when nothing will be left in a directory. */
	private clears(dir: ObjectId, memo: Map<ObjectId, boolean>): boolean {
		const known = memo.get(dir);
		if (known !== undefined) {
			return known;
		}
		memo.set(dir, false);
		const names = this.present.listings.get(dir);
		const result = names?.every((name) => {
			const target = this.entries.get(entryKey(dir, name));
			if (target === undefined || this.presentAt(target) === target.object) {
				return false;
			}
			const below = this.vanishingDirectory(target);
			return below === null || this.clears(below, memo);
		});
		memo.set(dir, result === true);
		return result === true;
	}

	/** Everything in a directory must go too. False when it wasn't looked into. */
	private purge(dir: ObjectId, seq: bigint): boolean {
		const names = this.present.listings.get(dir);
		if (names === undefined) {
			return false;
		}
		let added = false;
		for (const name of names) {
			const key = entryKey(dir, name);
			const seen = this.present.entries.get(key);
			if (seen?.object == null) {
				continue;
			}
			if (!this.entries.has(key)) {
				this.entries.set(key, { dir, name, object: null, mode: 0, seq, parentPath: this.shownDirectory(dir) });
				added = true;
			}
			const below = this.present.objects.get(seen.object);
			if (below !== undefined && (below.stat.mode & S_IFMT) === S_IFDIR && this.purge(seen.object, seq)) {
				added = true;
			}
		}
		return added;
	}

	// --- conflicts ---

	private findConflicts(kept: Set<ObjectId>): void {
		const finder = new ConflictFinder(this.history, this.input.selection, this.present);
		for (const target of this.differing()) {
			const object = this.presentAt(target);
			const seen = this.present.entries.get(entryKey(target.dir, target.name));
			if ((object !== null && kept.has(object)) || seen?.sameContent === true) {
				continue;
			}
			const reason =
				finder.entryReason(target) ??
				finder.arrivalReason(target, (key) => this.entries.has(key)) ??
				(object !== null && isUnknownObject(object) ? "made by somebody else outside the mount" : null);
			if (reason !== null) {
				this.addConflict(this.shownEntry(target), reason);
			}
		}
		for (const [object, seq] of this.touchedObjects()) {
			const seen = this.present.objects.get(object);
			if (seen === undefined || !this.isInTree(object) || !this.contentDiffers(seen)) {
				continue;
			}
			const reason = finder.objectReason(object, seq);
			if (reason !== null) {
				this.addConflict(this.shownObject(seen), reason);
			}
		}
	}

	/** More than times differ from the target. */
	private contentDiffers(seen: SeenObject): boolean {
		const attrs = this.attrs.get(seen.object);
		if (attrs !== undefined && attributesDiffer(attrs, seen.stat)) {
			return true;
		}
		const data = this.data.get(seen.object);
		if (data !== undefined) {
			return data.size !== seen.stat.size || seen.sameBytes?.some((same) => !same) === true;
		}
		return attrs !== undefined && (attrs.mode & S_IFMT) === S_IFREG && attrs.size !== seen.stat.size;
	}

	private addConflict(path: ByteString, reason: string): void {
		if (!this.input.selection.everybody && !isIgnoredConflict(path) && !this.conflicts.has(path)) {
			this.conflicts.set(path, reason);
		}
	}

	private hasForeignBytes(object: ObjectId, afterSeq: bigint): boolean {
		return this.history
			.dataRecords(object)
			.some((record) => record.seq > afterSeq && isForeign(record, this.input.selection));
	}

	// --- pre-images that were not captured ---

	private reportLost(): Set<ObjectId> {
		const bytesLost = new Set<ObjectId>();
		for (const lost of this.input.targets.lost) {
			if (lost.what === "entry") {
				this.skipped.set(lost.path, lost.reason);
				continue;
			}
			if (lost.object === null || !this.isInTree(lost.object)) {
				continue;
			}
			const seen = this.present.objects.get(lost.object);
			if (lost.what === "data" && !this.data.has(lost.object)) {
				bytesLost.add(lost.object);
			}
			if (seen !== undefined && (lost.what !== "data" || bytesLost.has(lost.object))) {
				this.skipped.set(this.shownObject(seen), lost.reason);
			}
		}
		return bytesLost;
	}

	// --- small questions ---

	/** Objects whose attributes or bytes were touched → the first such touch. */
	private touchedObjects(): Map<ObjectId, bigint> {
		const touched = new Map<ObjectId, bigint>();
		for (const [object, { seq }] of this.attrs) {
			touched.set(object, seq);
		}
		for (const [object, { seq }] of this.data) {
			const known = touched.get(object);
			if (known === undefined || seq < known) {
				touched.set(object, seq);
			}
		}
		return touched;
	}

	private presentAt(name: Name): ObjectId | null {
		return this.present.entries.get(entryKey(name.dir, name.name))?.object ?? null;
	}

	private *differing(): Generator<EntryTarget> {
		for (const target of [...this.entries.values()]) {
			if (this.presentAt(target) !== target.object) {
				yield target;
			}
		}
	}

	private isInTree(object: ObjectId): boolean {
		return isInTree(object, this.tree, this.present);
	}

	/** A path for people: where it must be, else where it is, else where it was. */
	private shownEntry(target: EntryTarget): ByteString {
		const must = this.tree.entryPath(target);
		if (must !== null) {
			return must;
		}
		const now = presentEntry(this.present, target);
		return now?.root === "mount" ? now.path : joinPath(target.parentPath, target.name);
	}

	private shownObject(seen: SeenObject): ByteString {
		const name = this.tree.wantedNames(seen.object)[0] ?? this.tree.keptNames(seen.object)[0] ?? seen.names[0];
		if (name === undefined) {
			return this.attrs.get(seen.object)?.path ?? "";
		}
		return this.tree.entryPath(name) ?? presentEntry(this.present, name)?.path ?? name.name;
	}

	private shownDirectory(dir: ObjectId): ByteString {
		const seen = this.present.objects.get(dir);
		const name = seen?.names[0];
		return (
			this.tree.directoryPath(dir) ?? (name === undefined ? "" : (presentEntry(this.present, name)?.path ?? name.name))
		);
	}
}

/** True when an object is (or will be) in the tree under some name. */
export function isInTree(object: ObjectId, tree: TargetTree, present: Present): boolean {
	const seen = present.objects.get(object);
	if (seen !== undefined && (seen.stat.mode & S_IFMT) === S_IFDIR) {
		return tree.hasDirectory(object);
	}
	return (
		tree.wantedNames(object).length > 0 ||
		tree.keptNames(object).length > 0 ||
		(seen !== undefined && hasOtherNames(seen))
	);
}

/** A file that has more links than the history has met: it stays in the tree whatever becomes of the known ones. */
export function hasOtherNames(seen: SeenObject): boolean {
	return (seen.stat.mode & S_IFMT) !== S_IFDIR && seen.stat.nlink > seen.names.length + seen.stored.length;
}

function toList(map: Map<ByteString, string>): PathReason[] {
	return [...map].map(([path, reason]) => ({ path, reason })).sort((a, b) => (a.path < b.path ? -1 : 1));
}
