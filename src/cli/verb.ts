/** What a verb is to the command line: its options, its help, and what it does. One per file in verbs/, loaded when called. */
import type { Argv } from "yargs";

export interface VerbContext {
	/** Absolute path of the folder to act in: where the caller stands, or `-C DIR`. We ourselves stand in `/`. */
	dir: string;
	/** `-C` as it was given, for commands that we suggest. */
	folderOption: string | undefined;
	/** For programs: JSON on standard output. */
	json: boolean;
	/** What stood after `--`. */
	rest: string[];
}

/** A verb whose options are of one type. */
export interface VerbOf<Options> {
	/** Options and positionals. */
	options(args: Argv): Argv<Options>;
	/** Shown in its help: command line (without `turnfs`) and what it does. */
	examples: [commandLine: string, does: string][];
	/** Exit statuses other than 0, 1 and 2, for its help. */
	exitStatuses?: Record<string, string>;
	/** Only `run` takes a command after `--`. */
	takesCommand?: boolean;
	/** Exit status when turnfs itself fails; by default the error's own. */
	failureStatus?: number;
	/** @returns the exit status. Failures are thrown as TurnfsError. */
	run(args: Options, context: VerbContext): Promise<number>;
}

/** A verb as the command line holds it: what its options are, only the verb itself knows. */
export type Verb = VerbOf<unknown>;

/** Gives a verb's `run` the types of its options. */
export function defineVerb<Options>(verb: VerbOf<Options>): Verb {
	return verb as Verb;
}
