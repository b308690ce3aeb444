/**
 * Whether somebody else has changed what a rewind is about to put back (design: P9). Somebody else's change shows in one of two
 * ways: as a touch in the journal by a lane that is neither undone nor a rewind's, or as a difference between what
 * something had become when a span ended and what it was when it was next seen (a change that did not go through the
 * mount). Pure.
 */
import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from "../engine/fsop.js";
import type { AttrsRecord, ByteString, ObjectId } from "../store/records.js";
import type { History } from "./history.js";
import { isForeign } from "./target.js";
import { type EntryKey, type EntryTarget, entryKey, type Present, type Selection, type SpanPost } from "./types.js";

const CHANGED = "changed by somebody else since";
const CHANGED_OUTSIDE = "changed outside the mount since";
const MOVED = "moved or deleted by somebody else since";
const MOVED_OUTSIDE = "moved outside the mount since";
const PERMISSIONS_CHANGED = "its permissions, owner or attributes were changed by somebody else since";
const UNKNOWN = "what it had become is not known, after a crash or a change outside the mount";

/** What stat and the records have in common. */
interface Attributes {
	mode: number;
	uid: number;
	gid: number;
	size: bigint;
	mtimeNs: bigint;
}

export class ConflictFinder {
	private readonly history: History;
	private readonly selection: Selection;
	private readonly present: Present;

	constructor(history: History, selection: Selection, present: Present) {
		this.history = history;
		this.selection = selection;
		this.present = present;
	}

	/** Why a name can't simply be given back its target, or null. Asked only when it means something else now. */
	entryReason(target: EntryTarget): string | null {
		const key = entryKey(target.dir, target.name);
		const seen = this.present.entries.get(key);
		const records = this.history.entryRecords(key);
		if (records.some((record) => record.seq > target.seq && isForeign(record, this.selection))) {
			return CHANGED;
		}
		for (const post of this.history.postsOfEntry(key)) {
			if (post.seq < target.seq) {
				continue;
			}
			if (post.unknown) {
				return UNKNOWN;
			}
			const next = records.find((record) => record.epoch > post.epoch);
			if (next === undefined ? post.object !== (seen?.object ?? null) : this.differsLater(post, next, next.object)) {
				return CHANGED_OUTSIDE;
			}
		}
		if (seen?.object == null) {
			return null;
		}
		const object = this.present.objects.get(seen.object);
		// A folder's content has entries of its own; what others did in it moves, or stays, with it.
		return object === undefined || (object.stat.mode & S_IFMT) === S_IFDIR
			? null
			: this.objectReason(seen.object, target.seq);
	}

	/** Why an object can't simply be put under its target name: others have moved or deleted what the turn left, or null. */
	arrivalReason(target: EntryTarget, isTouchedName: (key: EntryKey) => boolean): string | null {
		if (target.object === null) {
			return null;
		}
		const takenAway = this.history
			.entriesOf(target.object)
			.some(
				(record) =>
					record.seq > target.seq &&
					isForeign(record, this.selection) &&
					isTouchedName(entryKey(record.dir, record.name)),
			);
		if (takenAway) {
			return MOVED;
		}
		return this.present.objects.get(target.object)?.strayed === true ? MOVED_OUTSIDE : null;
	}

	/** Why an object's bytes and attributes can't simply be put back, or null. Asked only when they differ from the target. */
	objectReason(object: ObjectId, afterSeq: bigint): string | null {
		const foreignBytes = this.history
			.dataRecords(object)
			.some((record) => record.seq > afterSeq && isForeign(record, this.selection));
		if (foreignBytes) {
			return CHANGED;
		}
		const present = this.present.objects.get(object)?.stat ?? null;
		const records = this.history.attrsRecords(object);
		for (const [index, record] of records.entries()) {
			if (record.seq <= afterSeq || !isForeign(record, this.selection)) {
				continue;
			}
			const next = records[index + 1] ?? present;
			if (next !== null && attributesDiffer(record, next)) {
				return PERMISSIONS_CHANGED;
			}
		}
		return this.outsideReason(object, records, afterSeq, present);
	}

	private outsideReason(
		object: ObjectId,
		records: readonly AttrsRecord[],
		afterSeq: bigint,
		present: Attributes | null,
	): string | null {
		for (const post of this.history.postsOfObject(object)) {
			if (post.seq < afterSeq || post.object === null) {
				continue;
			}
			if (post.unknown) {
				return UNKNOWN;
			}
			const next = records.find((record) => record.epoch > post.epoch);
			// Between the end of the span and the look at it the next span had begun: its own post-state tells more.
			if (next !== undefined && next.seq <= post.seq) {
				continue;
			}
			const later = next ?? present;
			if (later !== null && contentMayDiffer(post, later)) {
				return CHANGED_OUTSIDE;
			}
		}
		return null;
	}

	private differsLater(post: SpanPost, next: { seq: bigint }, object: ObjectId | null): boolean {
		return next.seq > post.seq && post.object !== object;
	}
}

/** True when more than times differ. */
export function attributesDiffer(
	before: Pick<AttrsRecord, "mode" | "uid" | "gid" | "xattrs">,
	after: { mode: number; uid: number; gid: number; xattrs: Record<ByteString, ByteString> },
): boolean {
	// A symlink's permission bits mean nothing and can't be changed.
	const modeMask = (before.mode & S_IFMT) === S_IFLNK ? S_IFMT : 0o177777;
	return (
		(before.mode & modeMask) !== (after.mode & modeMask) ||
		before.uid !== after.uid ||
		before.gid !== after.gid ||
		!sameXattrs(before.xattrs, after.xattrs)
	);
}

export function sameXattrs(a: Record<ByteString, ByteString>, b: Record<ByteString, ByteString>): boolean {
	const names = Object.keys(a);
	return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}

/** A post-state has no bytes: for a regular file another mtime means that they may be others. */
function contentMayDiffer(before: Attributes, after: Attributes): boolean {
	const kind = before.mode & S_IFMT;
	if (kind === S_IFLNK) {
		return before.uid !== after.uid || before.gid !== after.gid;
	}
	if (before.mode !== after.mode || before.uid !== after.uid || before.gid !== after.gid) {
		return true;
	}
	return kind === S_IFREG && (before.size !== after.size || before.mtimeNs !== after.mtimeNs);
}

/**
 * What is never a conflict: caches that tools write by themselves whenever somebody looks. Their present content is in the
 * rewind's own span, so a redo brings it back.
 */
export function isIgnoredConflict(path: ByteString): boolean {
	const name = path.slice(path.lastIndexOf("/") + 1);
	return name === ".DS_Store" || name.endsWith(".pyc") || path === ".git/index" || path.endsWith("/.git/index");
}
