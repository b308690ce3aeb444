/**
 * What the index keeps of the journal's records. One key per record, `rec/<seq>`, in journal order, so that "everything since
 * turn N began" is one range. Object ids here are canonical: ingest has already joined the ids that different mounts gave to
 * one inode.
 *
 * Names and paths are *byte strings*: each char is one byte (latin1), because names need not be UTF-8. They are decoded for
 * display only (`text/byte-string.ts`).
 */
export type ByteString = string;

/** The store's number of an object; 1 is the project folder. Decimal string: 64 bits don't fit a number. */
export type ObjectId = string;

/** 0 the user, 1 … 0x7fffffff a turn, from 0x80000000 a rewind or redo. */
export type Lane = number;

export interface Touch {
	/** Journal order; decimal. */
	seq: bigint;
	epoch: number;
	lane: Lane;
	/** Key of the process record, or null: `<session>/<proc>`. */
	proc: string | null;
	timeNs: bigint;
}

export interface EntryRecord extends Touch {
	type: "entry";
	dir: ObjectId;
	name: ByteString;
	/** What the name meant before; null: it was free. */
	object: ObjectId | null;
	/** st_mode of that object, 0 when free. */
	mode: number;
	parentPath: ByteString;
}

export interface AttrsRecord extends Touch {
	type: "attrs";
	object: ObjectId;
	mode: number;
	uid: number;
	gid: number;
	size: bigint;
	mtimeNs: bigint;
	ctimeNs: bigint;
	rdev: bigint;
	nlink: number;
	/** name → bytes */
	xattrs: Record<ByteString, ByteString>;
	/** Symlinks only. */
	target: ByteString | null;
	path: ByteString;
}

export interface Extent {
	offset: bigint;
	length: bigint;
	kind: "hole" | "pack" | "blob";
	/** Pack or blob number and the offset in it. */
	file: bigint;
	fileOffset: bigint;
	/** 16 hex digits; "" for holes. */
	xxh64: string;
}

export interface DataRecord extends Touch {
	type: "data";
	object: ObjectId;
	/** These extents are all of the object: bytes in none of them are beyond its end. */
	whole: boolean;
	/** Size at the first touch. */
	size: bigint;
	extents: Extent[];
}

export interface SkippedRecord extends Touch {
	type: "skipped";
	object: ObjectId | null;
	dir: ObjectId | null;
	name: ByteString;
	what: "entry" | "attrs" | "data" | "preserved";
	errno: number;
	reason: string;
}

/** The object's content or link lies in the store at `place` from here on. */
export interface PreservedRecord {
	type: "preserved";
	seq: bigint;
	object: ObjectId;
	place: ByteString;
	how: "renamed" | "linked";
}

export interface DroppedRecord {
	type: "dropped";
	seq: bigint;
	object: ObjectId;
	place: ByteString;
}

export interface MovedRecord {
	type: "moved";
	seq: bigint;
	object: ObjectId;
	dir: ObjectId;
	name: ByteString;
}

export type IndexRecord =
	| EntryRecord
	| AttrsRecord
	| DataRecord
	| SkippedRecord
	| PreservedRecord
	| DroppedRecord
	| MovedRecord;

export type SpanKind = "turn" | "mark" | "between" | "gap" | "rewind" | "redo";

/** One span (epoch) of history. */
export interface Span {
	epoch: number;
	kind: SpanKind;
	lane: Lane;
	/** The turn this span is part of (kind turn or mark), else null. */
	turn: number | null;
	/** 0 for the turn's own beginning, 1, 2 … for its marks. */
	mark: number;
	label: string | null;
	anchor: unknown;
	session: string | null;
	beginNs: bigint;
	/** null while it is the current one. */
	endNs: bigint | null;
	/** seq of its first record; everything of this span has a seq ≥ this. */
	firstSeq: bigint;
	/** Extra facts from the daemon: owner, processes behind the mount, a rewind's target. */
	meta: Record<string, unknown>;
}

/** Which inode an object is at present. */
export interface Binding {
	object: ObjectId;
	/** 0: the filesystem of the project folder. */
	dev: bigint;
	ino: bigint;
	birthNs: bigint;
	mode: number;
	/** Last known place in the tree (from Bind and Moved records), null for the project folder or when unknown. */
	parent: ObjectId | null;
	name: ByteString;
	/** Raw bytes of the file handle, "" when there is none. */
	handle: ByteString;
	/** Where in the store a link of it lies, or null. */
	place: ByteString | null;
	/** Further links of it in the store: every name of a hard-linked file that was removed. */
	morePlaces: ByteString[];
}

/** What an entry or object had become when a span ended. */
export interface PostState {
	/** Journal position at which it was looked at: records after it saw the same state or a later one. */
	seq: bigint;
	/** Entries: which object the name meant, or null. Objects: themselves, or null when gone. */
	object: ObjectId | null;
	/** What it was can't be told: somebody else changed it before it was looked at, or an object unknown to the history is there. */
	unknown: boolean;
	mode: number;
	uid: number;
	gid: number;
	size: bigint;
	mtimeNs: bigint;
	ctimeNs: bigint;
	/** Where it was found: a path in the project, or below the store (`stored`). An entry's own path; "" when not known. */
	path: ByteString;
	/** Found in the store only: it had no known name in the project. */
	stored: boolean;
	/** Objects: digest of the xattrs (`store/xattr-digest.ts`), "" for none. Entries: "". */
	xattrs: string;
}

export interface ProcessInfo {
	pid: number;
	comm: string;
	/** argv; empty when it could not be read. */
	command: string[];
	lane: Lane;
}

export interface Turn {
	turn: number;
	label: string | null;
	anchor: unknown;
	session: string | null;
	state: "open" | "ended" | "rewound";
	beginNs: bigint;
	endNs: bigint | null;
	/** Epochs of its spans: the first is the turn's own beginning, the others its marks. */
	epochs: number[];
	firstSeq: bigint;
	owner: { pid: number; token: string } | null;
	pinned: boolean;
	/** Set when rewound: the epoch of the rewind's span. */
	rewoundBy: number | null;
	/** Processes found standing behind the mount at its begin. */
	behind: { pid: number; comm: string }[];
}
