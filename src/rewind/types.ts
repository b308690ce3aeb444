/**
 * What the parts of a rewind hand to each other: targets (what must be), present (what is), and the plan (how to get there).
 * All of it is plain data, so that planning is a pure function.
 */
import type { FileStat } from "../engine/fsop.js";
import type { AttrsRecord, ByteString, Extent, Lane, ObjectId, PostState } from "../store/records.js";

/** The project folder. */
export const ROOT_OBJECT: ObjectId = "1";

/** Lanes from here on are those of rewinds and redos. */
export const FIRST_REWIND_LANE: Lane = 0x8000_0000;

/** `<dir>/<name>`: ids have no slash, so this is unambiguous. */
export type EntryKey = string;

export function entryKey(dir: ObjectId, name: ByteString): EntryKey {
	return `${dir}/${name}`;
}

/**
 * Whose touches are to be undone, and whose count as somebody else's. Touches that are neither are a rewind's or a
 * rewound turn's: they are in the present state, but nobody's work.
 */
export interface Selection {
	/** Objects that come back into the tree: what rewinds and redos did to them counts too. */
	comingBack?: ReadonlySet<ObjectId>;
	/** Lanes to undo; of each only touches after this journal position (0n: all of them). */
	lanes: ReadonlyMap<Lane, bigint>;
	/** Lanes of rewound turns: never a conflict. */
	ignored: ReadonlySet<Lane>;
	/** `--exact`: everybody's touches are undone. */
	everybody: boolean;
}

export interface EntryTarget {
	dir: ObjectId;
	name: ByteString;
	/** What the name must mean; null: nothing. */
	object: ObjectId | null;
	/** st_mode of that object (0: nothing). */
	mode: number;
	/** Position of the touch whose pre-image this is: what others did later is in its way. */
	seq: bigint;
	/** Where the directory was at that time, a hint for people. */
	parentPath: ByteString;
}

/** A range of bytes that must be put back. */
export interface Piece extends Extent {
	/** Set when this is only part of what was captured: the whole of it, which is what `xxh64` is of. */
	captured?: Extent;
}

export interface DataTarget {
	object: ObjectId;
	seq: bigint;
	size: bigint;
	/** Every byte below `size` is in a piece: the file could be made again from them. */
	complete: boolean;
	/** By offset, without overlap. */
	pieces: Piece[];
}

export interface LostPreimage {
	what: "entry" | "attrs" | "data" | "preserved";
	object: ObjectId | null;
	key: EntryKey | null;
	path: ByteString;
	reason: string;
	seq: bigint;
}

export interface Targets {
	entries: Map<EntryKey, EntryTarget>;
	attrs: Map<ObjectId, AttrsRecord>;
	data: Map<ObjectId, DataTarget>;
	/** Pre-images that could not be captured. */
	lost: LostPreimage[];
}

export interface SpanPost extends PostState {
	epoch: number;
}

/** An id for an object that the history has never met. */
export function unknownObject(stat: Pick<FileStat, "dev" | "ino" | "birthNs">): ObjectId {
	return `?${stat.dev}:${stat.ino}:${stat.birthNs}`;
}

export function isUnknownObject(object: ObjectId): boolean {
	return object.startsWith("?");
}

export interface SeenEntry {
	dir: ObjectId;
	name: ByteString;
	/** null: the name is free, or its directory has gone. */
	object: ObjectId | null;
	/** Permissions forbid to look: what is there is not known. */
	closed?: boolean;
	/** It holds the same kind of thing with the same content as the target does, though another inode. */
	sameContent?: boolean;
}

export interface Name {
	dir: ObjectId;
	name: ByteString;
}

export interface StoredPlace {
	/** Below the store. */
	place: ByteString;
	/** Put there since the first selected touch: it is taken first. */
	recent: boolean;
}

/** An object that exists. */
export interface SeenObject {
	object: ObjectId;
	stat: FileStat;
	/** Its names that were looked at. A directory has one; the project folder none. */
	names: Name[];
	/** Its permissions were changed for the moment, to look into it; `stat` has them as they were. */
	opened?: boolean;
	/** Found by its file handle, not where it was last seen: somebody moved it outside the mount. */
	strayed?: boolean;
	/** Links of it in the store; a directory is here only when an interrupted rewind left it in staging. */
	stored: StoredPlace[];
	/** Per piece of its data target: whether the bytes there are already so. */
	sameBytes?: boolean[];
}

export interface Present {
	entries: Map<EntryKey, SeenEntry>;
	objects: Map<ObjectId, SeenObject>;
	/** Last known names of objects that are not to be found any more. */
	lastNames: Map<ObjectId, Name>;
	/** Names in directories that may have to go. */
	listings: Map<ObjectId, ByteString[]>;
	/** What can't be looked at because permissions forbid it. */
	closed: { path: ByteString }[];
	/** Where in the store an object was kept, and is not (or something else is there). */
	gonePlaces?: Map<ObjectId, ByteString>;
}

/** Where a step acts: in the mount, or in the store by way of the mount's door. */
export interface StepPlace {
	root: "mount" | "door";
	path: ByteString;
}

export interface WantedAttrs {
	mode: number;
	uid: number;
	gid: number;
	mtimeNs: bigint;
	xattrs: Record<ByteString, ByteString>;
}

/** `path` is for people: what in the project this is about. */
export type Step = { path: ByteString } & (
	| { do: "open-up"; at: StepPlace; mode: number }
	| { do: "move"; object: ObjectId; from: StepPlace; to: StepPlace }
	| { do: "unlink"; object: ObjectId; at: StepPlace }
	| { do: "rmdir"; object: ObjectId; at: StepPlace }
	| { do: "make"; object: ObjectId; at: StepPlace; depth: number; attrs: AttrsRecord; data: DataTarget | null }
	| { do: "link"; object: ObjectId; from: StepPlace; to: StepPlace }
	| { do: "bytes"; object: ObjectId; at: StepPlace; presentSize: bigint; size: bigint; pieces: Piece[] }
	| { do: "attrs"; object: ObjectId; at: StepPlace; want: WantedAttrs }
);

export interface PathReason {
	path: ByteString;
	reason: string;
}

export interface Plan {
	/** In the order in which they must be done. */
	steps: Step[];
	conflicts: PathReason[];
	/** What can't be put back because its pre-image is missing. */
	skipped: PathReason[];
	/** Paths put back. */
	restored: ByteString[];
	/** Paths that go. */
	deleted: ByteString[];
	/** Folders that stay because they hold others' files. */
	kept: ByteString[];
	/** Paths that permissions forbade to look at, so the plan is not complete. */
	closed: ByteString[];
	/** Folder below the store that the steps use. */
	staging: ByteString;
	/** Bytes in packs and blobs that steps read; to be verified before the first change. */
	sources: Piece[];
	/** Places below the store that must hold an object which is needed, and don't. */
	damaged: ByteString[];
}
