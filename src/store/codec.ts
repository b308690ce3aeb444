/**
 * How values stand in the index: JSON with 64-bit numbers as decimal strings. Every value is checked when it is read,
 * because nothing in the store is trusted: a record that a fault or a hand has changed must give an error, never a wrong tree.
 */
import { z } from "zod";
import type { Binding, IndexRecord, PostState, ProcessInfo, Span, Turn } from "./records.js";

const bigInteger = z
	.string()
	.regex(/^-?\d{1,20}$/)
	.transform(BigInt);
const natural = z
	.string()
	.regex(/^\d{1,20}$/)
	.transform(BigInt);
const count = z.number().int().nonnegative();
const object = z.string().regex(/^[1-9]\d{0,19}$/);
const name = z
	.string()
	.regex(/^[^/\0]{1,1024}$/s)
	.refine((text) => text !== "." && text !== "..");
const path = z.string().refine((text) => !text.includes("\0"));
/** Of an object that has one. */
const nameOrNone = z.union([name, z.literal("")]);

const touch = { seq: natural, epoch: count, lane: count, proc: z.string().nullable(), timeNs: bigInteger };

const extent = z.object({
	offset: natural,
	length: natural,
	kind: z.enum(["hole", "pack", "blob"]),
	file: natural,
	fileOffset: natural,
	xxh64: z.string().regex(/^([0-9a-f]{16})?$/),
});

export const recordSchema: z.ZodType<IndexRecord> = z.discriminatedUnion("type", [
	z.object({
		...touch,
		type: z.literal("entry"),
		dir: object,
		name,
		object: object.nullable(),
		mode: count,
		parentPath: path,
	}),
	z.object({
		...touch,
		type: z.literal("attrs"),
		object,
		mode: count,
		uid: count,
		gid: count,
		size: natural,
		mtimeNs: bigInteger,
		ctimeNs: bigInteger,
		rdev: natural,
		nlink: count,
		xattrs: z.record(z.string(), z.string()),
		target: z.string().nullable(),
		path,
	}),
	z.object({
		...touch,
		type: z.literal("data"),
		object,
		whole: z.boolean(),
		size: natural,
		extents: z.array(extent),
	}),
	z.object({
		...touch,
		type: z.literal("skipped"),
		object: object.nullable(),
		dir: object.nullable(),
		name: nameOrNone,
		what: z.enum(["entry", "attrs", "data", "preserved"]),
		errno: z.number().int(),
		reason: z.string(),
	}),
	z.object({
		type: z.literal("preserved"),
		seq: natural,
		object,
		place: path,
		how: z.enum(["renamed", "linked"]),
	}),
	z.object({ type: z.literal("dropped"), seq: natural, object, place: path }),
	z.object({ type: z.literal("moved"), seq: natural, object, dir: object, name }),
]);

export const spanSchema: z.ZodType<Span> = z.object({
	epoch: count,
	kind: z.enum(["turn", "mark", "between", "gap", "rewind", "redo"]),
	lane: count,
	turn: count.nullable(),
	mark: count,
	label: z.string().nullable(),
	anchor: z.unknown(),
	session: z.string().nullable(),
	beginNs: bigInteger,
	endNs: bigInteger.nullable(),
	firstSeq: natural,
	meta: z.record(z.string(), z.unknown()),
});

const behind = z.array(z.object({ pid: count, comm: z.string() }));

/** What stands under `turn/<n>`: the state follows from it. */
export const storedTurnSchema = z.object({
	turn: count,
	label: z.string().nullable(),
	anchor: z.unknown(),
	session: z.string().nullable(),
	beginNs: bigInteger,
	endNs: bigInteger.nullable(),
	epochs: z.array(count).min(1),
	firstSeq: natural,
	owner: z.object({ pid: count, token: z.string() }).nullable(),
	pinned: z.boolean(),
	rewoundBy: count.nullable(),
	behind,
});
export type StoredTurn = z.output<typeof storedTurnSchema>;

/** What the daemon hands to the engine with a span's beginning, to find it again in the journal. */
export const spanMetaSchema = z.object({
	turn: count.nullable().default(null),
	mark: count.default(0),
	label: z.string().nullable().default(null),
	anchor: z.unknown().optional(),
	session: z.string().nullable().default(null),
	owner: z.object({ pid: count, token: z.string() }).nullable().default(null),
	behind: behind.default([]),
	/** Facts of a rewind. */
	extra: z.record(z.string(), z.unknown()).default({}),
});
export type SpanMeta = z.output<typeof spanMetaSchema>;

export function turnOfStored(stored: StoredTurn): Turn {
	const state = stored.rewoundBy !== null ? "rewound" : stored.endNs === null ? "open" : "ended";
	return { ...stored, anchor: stored.anchor, state };
}

export const bindingSchema: z.ZodType<Binding> = z.object({
	object,
	dev: natural,
	ino: natural,
	birthNs: bigInteger,
	mode: count,
	parent: object.nullable(),
	name: nameOrNone,
	handle: z.string(),
	place: path.nullable(),
	morePlaces: z.array(path),
});

export const postStateSchema: z.ZodType<PostState> = z.object({
	seq: natural,
	object: object.nullable(),
	unknown: z.boolean(),
	mode: count,
	uid: count,
	gid: count,
	size: natural,
	mtimeNs: bigInteger,
	ctimeNs: bigInteger,
	path,
	stored: z.boolean(),
	xattrs: z.string(),
});

export const processSchema: z.ZodType<ProcessInfo> = z.object({
	pid: count,
	comm: z.string(),
	command: z.array(z.string()),
	lane: count,
});

/** Where one content lies. */
export const blobSchema = z.object({ kind: z.enum(["pack", "blob"]), file: natural, fileOffset: natural });
export type BlobLocation = z.output<typeof blobSchema>;

export const objectIdSchema = object;
export const epochSchema = count;

/** A rewind or redo, from before its first change on. */
export const rewindEntrySchema = z.object({
	/** Of the rewind's own span. */
	epoch: count,
	kind: z.enum(["rewind", "redo"]),
	/** The turn gone back to (redo: the earliest one done again). */
	turn: count,
	/** Every turn it rewinds (redo: makes live again). */
	turns: z.array(count),
	/** `applying` at a start means that it was interrupted. */
	state: z.enum(["applying", "done"]),
	/** The epoch of the redo that undid it. */
	undoneBy: count.nullable(),
	beginNs: bigInteger,
	/** The rewind's own facts: what was asked, the plan's steps. */
	details: z.unknown(),
});
export type RewindEntry = z.output<typeof rewindEntrySchema>;

/** A turn's numbers for the log, once it has ended. */
export const summarySchema = z.object({
	counts: z.object({ added: count, modified: count, deleted: count, renamed: count }),
	bytes: z.number(),
	skipped: count,
});
export type TurnSummary = z.output<typeof summarySchema>;

export const metaSchema = z.object({
	/** The last journal record that is in the index. */
	lastSeq: natural,
	/** The next id for an object. */
	nextObject: natural,
	lastEpoch: count,
	/** The highest turn number ever given: numbers are never used again. */
	lastTurn: count,
	/** The journal's session (one per mount), as hex; "" when nothing was ever mounted. */
	session: z.string(),
	/** How that session ended; null while it lives. */
	sessionEnd: z.enum(["unmounted", "crashed"]).nullable(),
});
export type Meta = z.output<typeof metaSchema>;

export const emptyMeta: Meta = {
	lastSeq: 0n,
	nextObject: 2n,
	lastEpoch: 0,
	lastTurn: 0,
	session: "",
	sessionEnd: null,
};

/** @param value plain data; bigints become decimal strings */
export function encodeValue(value: unknown): string {
	return JSON.stringify(value, (_key, item) => (typeof item === "bigint" ? item.toString() : item));
}
