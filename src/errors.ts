/**
 * Every error a user can meet: its code (never changes), sentence, way out and exit status, in one table. A wrong argument
 * from code is a plain TypeError and not listed here.
 */

interface ErrorKind {
	/** One sentence; `{name}` is filled in from the error's data. */
	sentence: string;
	/** What to do about it; `{name}` likewise. */
	hint: string;
	exit: number;
}

const errorKinds = {
	TURNFS_USAGE: { sentence: "{what}", hint: "See `turnfs --help`.", exit: 2 },
	TURNFS_CONFIRM_NEEDED: {
		sentence: "{verb} changes files and there is no terminal to ask on.",
		hint: "Look first with `--dry-run`, then repeat it with `--yes`.",
		exit: 2,
	},
	TURNFS_UNSUPPORTED_PLATFORM: {
		sentence: "turnfs needs Linux with FUSE; this is {platform}.",
		hint: "Run it in a Linux machine or container.",
		exit: 1,
	},
	TURNFS_ENGINE_MISSING: {
		sentence: "The engine {path} has not been built.",
		hint: "Run `npm rebuild turnfs` (in a checkout: `npm run build`); it needs a C++20 compiler, make and python3.",
		exit: 1,
	},
	TURNFS_NOT_A_PROJECT: {
		sentence: "{path} is not in a turnfs project.",
		hint: "Begin one with `turnfs run -- COMMAND` or `turnfs mount` in the folder to protect.",
		exit: 1,
	},
	TURNFS_NO_SUCH_FOLDER: {
		sentence: "{path} is not a folder that can be opened ({reason}).",
		hint: "Check the path and its permissions.",
		exit: 1,
	},
	TURNFS_PROTECTED_FOLDER: {
		sentence: "{path} can't be mounted: it is {what}.",
		hint: "Choose a project folder below it.",
		exit: 1,
	},
	TURNFS_NESTED_MOUNT: {
		sentence: "{path} is {relation} of the mounted project {other}.",
		hint: "Unmount that one first with `turnfs -C {other} umount`.",
		exit: 1,
	},
	TURNFS_NO_FUSE: {
		sentence: "FUSE can't be used here: {reason}.",
		hint: "Install the package fuse3 and load the module fuse; in a container, start it with `--device /dev/fuse --cap-add SYS_ADMIN`.",
		exit: 1,
	},
	TURNFS_MOUNT_FAILED: {
		sentence: "{mountpoint} could not be mounted: {reason}.",
		hint: "See {log} for what the engine said.",
		exit: 1,
	},
	TURNFS_ALREADY_MOUNTED: {
		sentence: "{project} is already mounted at {mountpoint}.",
		hint: "Go on in it, or unmount it with `turnfs umount`.",
		exit: 1,
	},
	TURNFS_NOT_MOUNTED: {
		sentence: "{project} is not mounted, so nothing would be captured.",
		hint: "Mount it with `turnfs mount`, or use `turnfs run -- COMMAND`.",
		exit: 1,
	},
	TURNFS_MOUNT_BUSY: {
		sentence: "{mountpoint} is in use by {holders}.",
		hint: "Let them end, or detach it at once with `turnfs umount --lazy`.",
		exit: 1,
	},
	TURNFS_BEHIND_MOUNT: {
		sentence: "Process {pid} ({comm}) stands in the folder under the mount, so its changes would not be captured.",
		hint: "Enter the mounted folder again there, with `cd .`, and repeat the command.",
		exit: 1,
	},
	TURNFS_SUBMOUNT: {
		sentence: "{path} ({type}) was mounted inside the project: what changes in it is not captured.",
		hint: "Unmount it, or keep the agent out of it.",
		exit: 1,
	},
	TURNFS_STORE_TOO_NEW: {
		sentence: "The store {store} has layout {found}; this turnfs reads up to {known}.",
		hint: "Install a newer turnfs. Nothing was changed.",
		exit: 1,
	},
	TURNFS_STORE_LOCKED: {
		sentence: "Another turnfs{by} has the store {store} open.",
		hint: "Wait for it to end, or stop that process.",
		exit: 1,
	},
	TURNFS_STORE_DAMAGED: {
		sentence: "The store is damaged: {file}: {reason}.",
		hint: "Nothing was changed or deleted. Copy the store folder before trying anything, and put {file} back from a backup if you have one.",
		exit: 1,
	},
	TURNFS_STORE_UNUSABLE: {
		sentence: "The store {store} can't be used: {reason}.",
		hint: "Check its permissions and free space, or choose another place with `--store DIR`.",
		exit: 1,
	},
	TURNFS_UNKNOWN_TURN: {
		sentence: "There is no turn {turn}.",
		hint: "`turnfs log --all` lists the turns there are.",
		exit: 1,
	},
	TURNFS_TURN_REWOUND: {
		sentence: "Turn {turn} was already rewound.",
		hint: "`turnfs redo` undoes the newest rewind; `turnfs log --all` lists rewound turns too.",
		exit: 1,
	},
	TURNFS_TURN_OPEN: {
		sentence: "Turn {turn} is still open and its owner (pid {pid}) lives.",
		hint: "End it with `turnfs turn end {turn}`, or wait for that process.",
		exit: 1,
	},
	TURNFS_NO_OPEN_TURN: {
		sentence: "No turn is open.",
		hint: "Begin one with `turnfs turn begin`.",
		exit: 1,
	},
	TURNFS_INSIDE_TURN: {
		sentence: "`turnfs {verb}` is refused inside the turn it would disturb.",
		hint: "Run it from a shell outside turn {turn}.",
		exit: 1,
	},
	TURNFS_REWIND_CONFLICT: {
		sentence: "{count} of the paths to restore were changed after turn {turn} by somebody else; nothing was changed.",
		hint: "Look with `--dry-run`; `--overwrite` restores them too and keeps the present state for `turnfs redo`.",
		exit: 3,
	},
	TURNFS_REWIND_FAILED: {
		sentence: "The rewind stopped: {reason}.",
		hint: "What was done is recorded; run the same command again to go on, or `turnfs redo` to go back.",
		exit: 1,
	},
	TURNFS_NOTHING_TO_REDO: {
		sentence: "There is no rewind to redo.",
		hint: "Only the newest rewind can be undone, and only until the next turn begins.",
		exit: 1,
	},
	TURNFS_ENGINE_GONE: {
		sentence: "The engine of {project} has ended unexpectedly; the folder is plain and intact, and the mount is gone.",
		hint: "Mount again with `turnfs mount`; {log} says more.",
		exit: 1,
	},
	TURNFS_ENGINE_REFUSED: {
		sentence: "{verb} failed in the engine: {reason}.",
		hint: "`turnfs status` shows the state of the mount.",
		exit: 1,
	},
	TURNFS_DAEMON_FAILED: {
		sentence: "The turnfs daemon failed: {reason}.",
		hint: "Try again; {log} has the details.",
		exit: 1,
	},
	TURNFS_RUNTIME_DIR: {
		sentence: "The runtime folder {path} can't be trusted: {reason}.",
		hint: "Remove it, or point XDG_RUNTIME_DIR to a folder of your own with mode 0700.",
		exit: 1,
	},
	TURNFS_COMMAND_NOT_FOUND: { sentence: "{command}: command not found.", hint: "Check the name and PATH.", exit: 127 },
	TURNFS_COMMAND_NOT_EXECUTABLE: {
		sentence: "{command} can't be executed ({reason}).",
		hint: "Check its permissions and its first line.",
		exit: 126,
	},
} satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** All codes, for documentation and tests. */
export const errorCodes = Object.keys(errorKinds) as ErrorCode[];

/** An error as it travels over the daemon's socket and in `--json` output. */
export interface ErrorJson {
	code: ErrorCode;
	message: string;
	hint: string;
	exitStatus: number;
	data: Record<string, unknown>;
}

function fillIn(template: string, data: Record<string, unknown>): string {
	return template.replace(/\{(\w+)\}/g, (_all, name: string) => String(data[name] ?? ""));
}

/**
 * An error that a user sees: one sentence, the way out, a code that never changes and the exit status.
 * @example throw new TurnfsError("TURNFS_UNKNOWN_TURN", { turn: 7 });
 */
export class TurnfsError extends Error {
	readonly code: ErrorCode;
	readonly hint: string;
	/** Of every verb but `run`, which reports its own failures as 125. */
	readonly exitStatus: number;
	readonly data: Record<string, unknown>;

	constructor(code: ErrorCode, data: Record<string, unknown> = {}, cause?: unknown) {
		const kind = errorKinds[code];
		super(fillIn(kind.sentence, data), cause === undefined ? undefined : { cause });
		this.name = "TurnfsError";
		this.code = code;
		this.hint = fillIn(kind.hint, data);
		this.exitStatus = kind.exit;
		this.data = data;
	}

	toJSON(): ErrorJson {
		return {
			code: this.code,
			message: this.message,
			hint: this.hint,
			exitStatus: this.exitStatus,
			data: this.data,
		};
	}

	/** The error that another turnfs process reported. Its own sentence is kept: it may be of a newer version. */
	static fromJson(json: { code: string; message: string; hint: string; data: Record<string, unknown> }): TurnfsError {
		const known = Object.hasOwn(errorKinds, json.code);
		const error = known
			? new TurnfsError(json.code as ErrorCode, json.data)
			: new TurnfsError("TURNFS_DAEMON_FAILED", { reason: `${json.message} (${json.code})`, log: "its log" });
		if (known) error.message = json.message;
		return error;
	}

	/** Any thrown value as a TurnfsError; foreign ones become `code`, with their message as `reason`. */
	static from(error: unknown, code: ErrorCode, data: Record<string, unknown> = {}): TurnfsError {
		if (error instanceof TurnfsError) return error;
		return new TurnfsError(code, { reason: describeCause(error), ...data }, error);
	}
}

/** A foreign error's message without a trailing full stop, so that it can stand inside a sentence. */
export function describeCause(error: unknown): string {
	const text = error instanceof Error ? error.message : String(error);
	return text.replace(/\.\s*$/, "");
}
