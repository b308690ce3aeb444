/**
 * The tree as it must be: the present one with the target entries put over it. Answers where an object is in it, and where
 * it is now. Pure.
 */
import type { ByteString, ObjectId } from "../store/records.js";
import { joinPath } from "../text/byte-string.js";
import { type EntryTarget, entryKey, type Name, type Present, ROOT_OBJECT, type StepPlace } from "./types.js";

export class TargetTree {
	private readonly entries: ReadonlyMap<string, EntryTarget>;
	private readonly present: Present;
	private readonly wanted = new Map<ObjectId, EntryTarget[]>();
	private readonly inTreeMemo = new Map<ObjectId, boolean>();

	constructor(entries: ReadonlyMap<string, EntryTarget>, present: Present) {
		this.entries = entries;
		this.present = present;
		for (const target of entries.values()) {
			if (target.object !== null) {
				const names = this.wanted.get(target.object);
				if (names === undefined) {
					this.wanted.set(target.object, [target]);
				} else {
					names.push(target);
				}
			}
		}
		for (const names of this.wanted.values()) {
			names.sort((a, b) => (a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0));
		}
	}

	/** The names that targets give an object, in directories that are in the tree. A directory has one at most. */
	wantedNames(object: ObjectId): EntryTarget[] {
		const all = (this.wanted.get(object) ?? []).filter((target) => this.hasDirectory(target.dir));
		return this.isDirectory(object) ? all.slice(0, 1) : all;
	}

	/** The names that it has now and keeps, because no target says otherwise. */
	keptNames(object: ObjectId): Name[] {
		const seen = this.present.objects.get(object);
		return (seen?.names ?? []).filter(({ dir, name }) => {
			const target = this.entries.get(entryKey(dir, name));
			return (target === undefined || target.object === object) && this.hasDirectory(dir);
		});
	}

	/** True when the directory is (or will be) in the tree. */
	hasDirectory(dir: ObjectId): boolean {
		if (dir === ROOT_OBJECT) {
			return true;
		}
		const known = this.inTreeMemo.get(dir);
		if (known !== undefined) {
			return known;
		}
		// A cycle can only come from others' renames meanwhile: nothing in it is in the tree.
		this.inTreeMemo.set(dir, false);
		const name = this.directoryName(dir);
		const result = name !== null && this.hasDirectory(name.dir);
		this.inTreeMemo.set(dir, result);
		return result;
	}

	/** Where a directory must be; null: nowhere. */
	directoryName(dir: ObjectId): Name | null {
		const wanted = this.wanted.get(dir)?.[0];
		if (wanted !== undefined) {
			return wanted;
		}
		const now = this.present.objects.get(dir)?.names[0];
		if (now === undefined) {
			return null;
		}
		const target = this.entries.get(entryKey(now.dir, now.name));
		return target === undefined || target.object === dir ? now : null;
	}

	/** The path of a directory in the tree as it must be, or null. */
	directoryPath(dir: ObjectId): ByteString | null {
		if (dir === ROOT_OBJECT) {
			return "";
		}
		const name = this.hasDirectory(dir) ? this.directoryName(dir) : null;
		const parent = name === null ? null : this.directoryPath(name.dir);
		return name === null || parent === null ? null : joinPath(parent, name.name);
	}

	entryPath(name: Name): ByteString | null {
		const parent = this.directoryPath(name.dir);
		return parent === null ? null : joinPath(parent, name.name);
	}

	/** True when neither the directory nor any above it changes its place. */
	isStable(dir: ObjectId): boolean {
		for (let at = dir; at !== ROOT_OBJECT; ) {
			const now = this.present.objects.get(at)?.names[0];
			const then = this.hasDirectory(at) ? this.directoryName(at) : null;
			if (now === undefined || then === null || now.dir !== then.dir || now.name !== then.name) {
				return false;
			}
			at = now.dir;
		}
		return true;
	}

	private isDirectory(object: ObjectId): boolean {
		const seen = this.present.objects.get(object);
		const mode = seen?.stat.mode ?? this.wanted.get(object)?.[0]?.mode ?? 0;
		return (mode & 0o170000) === 0o040000;
	}
}

/** Where a directory is now; null when it isn't there. One that an interrupted rewind left in staging is in the store. */
export function presentDirectory(present: Present, dir: ObjectId): StepPlace | null {
	if (dir === ROOT_OBJECT) {
		return { root: "mount", path: "" };
	}
	const seen = present.objects.get(dir);
	const name = seen?.names[0];
	if (name !== undefined) {
		const parent = presentDirectory(present, name.dir);
		return parent === null ? null : below(parent, name.name);
	}
	const stored = seen?.stored[0];
	return stored === undefined ? null : { root: "door", path: stored.place };
}

export function presentEntry(present: Present, { dir, name }: Name): StepPlace | null {
	const parent = presentDirectory(present, dir);
	return parent === null ? null : below(parent, name);
}

export function below(place: StepPlace, name: ByteString): StepPlace {
	return { root: place.root, path: joinPath(place.path, name) };
}

/** How many names a path has: the project folder is 0. */
export function depthOf(path: ByteString): number {
	if (path === "") {
		return 0;
	}
	let depth = 1;
	for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
		depth++;
	}
	return depth;
}
