/**
 * The daemon's routes: HTTP with JSON over a Unix socket. Requests and responses are zod schemas, checked on both sides.
 * Times are ISO 8601 in UTC. A path that is not UTF-8 also has `pathBytes` (base64). What a verb prints with `--json` is
 * the response of its route.
 */
import { z } from "zod";

export const pathSchema = z.object({ path: z.string(), pathBytes: z.string().optional() });
export const pathReasonSchema = pathSchema.extend({ reason: z.string() });
export type PathJson = z.infer<typeof pathSchema>;
export type PathReasonJson = z.infer<typeof pathReasonSchema>;

/** A process that stands in the folder under the mount: what it changes there is not captured. */
export const behindSchema = z.object({ pid: z.number().int(), comm: z.string() });
export type BehindJson = z.infer<typeof behindSchema>;

/** A turn's number, or `last`: the newest one that is not rewound, an open one included. */
export const turnSpecSchema = z.union([z.number().int().positive(), z.literal("last")]);
export type TurnSpec = z.infer<typeof turnSpecSchema>;

export const countsSchema = z.object({
	added: z.number().int(),
	modified: z.number().int(),
	deleted: z.number().int(),
	renamed: z.number().int(),
});
export type Counts = z.infer<typeof countsSchema>;

const pidsSchema = z.object({
	keeper: z.number().int().nullable(),
	engine: z.number().int().nullable(),
	daemon: z.number().int().nullable(),
});

// --- status ---
export const problemSchema = z.object({ code: z.string(), message: z.string(), hint: z.string() });
export type ProblemJson = z.infer<typeof problemSchema>;
export const statusResponseSchema = z.object({
	project: z.string(),
	mounted: z.boolean(),
	mountpoint: z.string().nullable(),
	/** `cached`, or null when not mounted. */
	io: z.string().nullable(),
	/** The open turn. */
	turn: z.number().int().nullable(),
	/** What the open turn has changed so far. */
	changes: countsSchema.nullable(),
	pids: pidsSchema,
	store: z.object({ path: z.string(), bytes: z.number(), turns: z.number().int() }),
	/** `run`s and mounts in the foreground that keep it mounted. */
	holders: z.array(z.object({ pid: z.number().int(), comm: z.string() })),
	behind: z.array(behindSchema),
	problems: z.array(problemSchema),
});
export type StatusResponse = z.infer<typeof statusResponseSchema>;

// --- mount, umount ---
export const mountRequestSchema = z.object({
	/** Where; by default over the project itself. */
	at: z.string().optional(),
	/** Being mounted already is fine. */
	ifNeeded: z.boolean().default(false),
	/** Larger files' bytes are recorded as skipped. */
	maxPreimageBytes: z.number().int().nonnegative().optional(),
	onCaptureFailure: z.enum(["fail", "skip"]).optional(),
	trace: z.boolean().default(false),
});
export type MountRequest = z.input<typeof mountRequestSchema>;
export const mountResponseSchema = z.object({
	mountpoint: z.string(),
	/** False: it was mounted before (`ifNeeded`). */
	mountedNow: z.boolean(),
	pids: pidsSchema,
	behind: z.array(behindSchema),
});
export type MountResponse = z.infer<typeof mountResponseSchema>;

export const umountRequestSchema = z.object({
	lazy: z.boolean().default(false),
	/** The caller's own hold doesn't count as a holder. */
	token: z.string().optional(),
	/** Only the mount of this keeper, not one that has been made since. */
	keeper: z.number().int().optional(),
});
export type UmountRequest = z.input<typeof umountRequestSchema>;
export const umountResponseSchema = z.object({ mountpoint: z.string() });
export type UmountResponse = z.infer<typeof umountResponseSchema>;

// --- turns ---
export const turnBeginRequestSchema = z.object({
	label: z.string().nullable().default(null),
	/** Any JSON the harness chooses. */
	anchor: z.unknown().optional(),
	session: z.string().nullable().default(null),
	/** Changes of this process and its descendants are the turn's. */
	ownerPid: z.number().int().positive().nullable().default(null),
	/** Processes with `TURNFS_RUN=<token>` in their environment are the turn's too. */
	token: z.string().nullable().default(null),
	/** Refused when this process itself stands behind the mount. */
	callerPid: z.number().int().positive().nullable().default(null),
});
export type TurnBeginRequest = z.input<typeof turnBeginRequestSchema>;
export const turnBeginResponseSchema = z.object({
	turn: z.number().int(),
	/** The turn that this begin ended. */
	ended: z.number().int().nullable(),
	mountpoint: z.string(),
	behind: z.array(behindSchema),
});
export type TurnBeginResponse = z.infer<typeof turnBeginResponseSchema>;

export const turnMarkRequestSchema = z.object({
	label: z.string().nullable().default(null),
	anchor: z.unknown().optional(),
});
export type TurnMarkRequest = z.input<typeof turnMarkRequestSchema>;
export const turnMarkResponseSchema = z.object({ turn: z.number().int(), mark: z.number().int() });
export type TurnMarkResponse = z.infer<typeof turnMarkResponseSchema>;

export const turnEndRequestSchema = z.object({
	/** By default the open one. */
	turn: z.number().int().positive().nullable().default(null),
});
export type TurnEndRequest = z.input<typeof turnEndRequestSchema>;
export const turnEndResponseSchema = z.object({
	/** null: none was open. */
	turn: z.number().int().nullable(),
	/** False: it had ended before. */
	endedNow: z.boolean(),
});
export type TurnEndResponse = z.infer<typeof turnEndResponseSchema>;

/**
 * `POST /hold` answers at once with a body that never ends. While the connection lives, the holder does; when it
 * breaks, the holder's turn ends, and what it mounted is unmounted when no other holder is left.
 */
export const holdRequestSchema = z.object({
	/** Names this hold; for `run`, the turn's token. */
	token: z.string().min(1),
	pid: z.number().int().positive(),
	turn: z.number().int().positive().nullable().default(null),
	/** Pid of the keeper of the mount that is held. */
	keeper: z.number().int().nullable(),
	/** Unmount that mount when this hold ends and no other is left. */
	unmount: z.boolean().default(false),
});
export type HoldRequest = z.input<typeof holdRequestSchema>;

// --- log, show ---
export const logQuerySchema = z.object({
	n: z.coerce.number().int().positive().optional(),
	/** Rewound turns and the spans between turns too. */
	all: z.stringbool().default(false),
});
export interface LogQuery {
	n?: number;
	all?: boolean;
}
export const logEntrySchema = z.object({
	/** null for spans that are not a turn's (`all`). */
	turn: z.number().int().nullable(),
	label: z.string().nullable(),
	anchor: z.unknown(),
	session: z.string().nullable(),
	spanKind: z.enum(["turn", "between", "gap", "rewind", "redo"]),
	begin: z.string(),
	end: z.string().nullable(),
	state: z.enum(["open", "ended", "rewound"]),
	pinned: z.boolean(),
	counts: countsSchema,
	/** Bytes kept for it in packs, blobs and preserved files. */
	bytes: z.number(),
	/** What could not be captured. */
	skipped: z.number().int(),
});
export type LogEntry = z.infer<typeof logEntrySchema>;
export const logResponseSchema = z.array(logEntrySchema);
export type LogResponse = LogEntry[];

export const kindSchema = z.enum(["file", "directory", "symlink", "fifo", "socket", "character", "block"]);
export type Kind = z.infer<typeof kindSchema>;
export const changeSideSchema = z.object({
	/** Bytes; null when it was not kept. */
	size: z.number().nullable(),
	/** Octal, four digits: `0644`. */
	permissions: z.string(),
});
export type ChangeSide = z.infer<typeof changeSideSchema>;
export const changeSchema = pathSchema.extend({
	/** Added, modified, deleted, renamed, or another kind of thing than before. */
	status: z.enum(["A", "M", "D", "R", "T"]),
	/** R: the path it had. */
	from: z.string().optional(),
	fromBytes: z.string().optional(),
	kind: kindSchema,
	before: changeSideSchema.nullable(),
	after: changeSideSchema.nullable(),
	/** Who touched it first. */
	by: z.object({ pid: z.number().int(), command: z.string() }).nullable(),
	/** Why its pre-image is missing or incomplete. */
	skipped: z.string().optional(),
});
export type Change = z.infer<typeof changeSchema>;
export const showResponseSchema = z.object({
	turn: z.number().int(),
	label: z.string().nullable(),
	state: z.enum(["open", "ended", "rewound"]),
	begin: z.string(),
	end: z.string().nullable(),
	changes: z.array(changeSchema),
	/** Everything that could not be captured, those with no row in `changes` too. */
	skipped: z.array(pathReasonSchema),
	/** Processes that stood behind the mount when it began. */
	behind: z.array(behindSchema),
});
export type ShowResponse = z.infer<typeof showResponseSchema>;

// --- rewind, redo ---
export const rewindRequestSchema = z.object({
	turn: turnSpecSchema,
	dryRun: z.boolean().default(false),
	overwrite: z.boolean().default(false),
	exact: z.boolean().default(false),
});
export type RewindRequest = z.input<typeof rewindRequestSchema>;
export type RewindOptions = z.output<typeof rewindRequestSchema>;
export const redoRequestSchema = z.object({
	dryRun: z.boolean().default(false),
	overwrite: z.boolean().default(false),
});
export type RedoRequest = z.input<typeof redoRequestSchema>;
export type RedoOptions = z.output<typeof redoRequestSchema>;
export const rewindResponseSchema = z.object({
	/** The turn gone back to; for a redo, the earliest turn that is live again. */
	turn: z.number().int(),
	/** Every turn that was undone (redo: done again). */
	turns: z.array(z.number().int()),
	/** Paths put back (or that would be, with `dryRun`). */
	restored: z.array(pathSchema),
	/** Paths that the turns had made and that went. */
	deleted: z.array(pathSchema),
	conflicts: z.array(pathReasonSchema),
	skipped: z.array(pathReasonSchema),
	failed: z.array(pathReasonSchema),
	/** The anchor of the turn gone back to. */
	anchor: z.unknown(),
	/** True: `turnfs redo` can undo this. */
	redo: z.boolean(),
	dryRun: z.boolean(),
	/** False: nothing was changed (a dry run, or conflicts). */
	applied: z.boolean(),
});
export type RewindResponse = z.infer<typeof rewindResponseSchema>;

export const shutdownResponseSchema = z.object({ pid: z.number().int() });
export type ShutdownResponse = z.infer<typeof shutdownResponseSchema>;

export const errorResponseSchema = z.object({
	error: z.object({
		code: z.string(),
		message: z.string(),
		hint: z.string(),
		exitStatus: z.number().int(),
		data: z.record(z.string(), z.unknown()),
	}),
});
