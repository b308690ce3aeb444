#!/usr/bin/env node
/**
 * `turnfs [-C DIR] VERB …`: reads the arguments, loads the one verb that is called, reports its errors, ends with its status.
 * Verbs are loaded lazily: a harness calls `turn begin` before every turn, so start-up time counts.
 */
import { readFileSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import yargs, { type Argv } from "yargs";
import { TurnfsError } from "../errors.js";
import { usageError } from "./arguments.js";
import { say } from "./output.js";
import { reportError } from "./report-error.js";
import type { Verb } from "./verb.js";

interface VerbEntry {
	/** As yargs wants it: name and positionals. */
	command: string;
	does: string;
	load: () => Promise<{ verb: Verb }>;
}

const VERBS: VerbEntry[] = [
	{ command: "run", does: "run a command as one turn: mount, run, end", load: () => import("./verbs/run.js") },
	{ command: "shell", does: "the same with your shell", load: () => import("./verbs/shell.js") },
	{ command: "mount", does: "mount the project", load: () => import("./verbs/mount.js") },
	{ command: "umount", does: "unmount it", load: () => import("./verbs/umount.js") },
	{
		command: "status",
		does: "what is mounted, open and kept, and what is wrong",
		load: () => import("./verbs/status.js"),
	},
	{ command: "log", does: "list the turns", load: () => import("./verbs/log.js") },
	{ command: "show <turn>", does: "what a turn changed", load: () => import("./verbs/show.js") },
	{ command: "rewind <turn>", does: "go back to where a turn began", load: () => import("./verbs/rewind.js") },
	{ command: "undo", does: "rewind the last turn", load: () => import("./verbs/undo.js") },
	{ command: "redo", does: "undo the last rewind", load: () => import("./verbs/redo.js") },
];

const TURN_VERBS: VerbEntry[] = [
	{ command: "begin", does: "begin a turn; prints its number", load: () => import("./verbs/turn-begin.js") },
	{ command: "mark", does: "set a mark inside the open turn", load: () => import("./verbs/turn-mark.js") },
	{ command: "end [turn]", does: "end the open turn", load: () => import("./verbs/turn-end.js") },
];

/** What is done without a verb. It has a name for yargs only. */
const OVERVIEW: VerbEntry = { command: "overview", does: "", load: () => import("./verbs/overview.js") };

const EXIT_STATUSES: Record<string, string> = { 0: "done", 1: "failed", 2: "wrong usage" };

/** The package's version, from package.json two folders up. */
function packageVersion(): string {
	const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
	return (JSON.parse(text) as { version: string }).version;
}

/** The folder to act in. Where the caller stands may have been deleted; then only an absolute -C helps. */
function startFolder(option: string | undefined): string {
	if (option?.startsWith("/")) return resolve(option);
	let here: string;
	try {
		here = process.cwd();
	} catch (error) {
		throw new TurnfsError("TURNFS_NO_SUCH_FOLDER", { path: ".", reason: "the current folder has gone" }, error);
	}
	return option === undefined ? here : resolve(here, option);
}

function describeStatuses(extra: Record<string, string> = {}): string {
	const rows = Object.entries({ ...EXIT_STATUSES, ...extra });
	return `Exit status: ${rows.map(([status, meaning]) => `${status} ${meaning}`).join(" · ")}`;
}

/** One call of the program. @returns its exit status */
export async function main(args: string[]): Promise<number> {
	const split = args.indexOf("--");
	const own = split === -1 ? [...args] : args.slice(0, split);
	const rest = split === -1 ? [] : args.slice(split + 1);
	let status = 0;
	let output = "";
	let failureStatus: number | undefined;
	let called: VerbEntry | undefined;
	const overview = needsOverview(own);
	if (overview) own.push(OVERVIEW.command);

	const register = (to: Argv, entry: VerbEntry, _listed = true): Argv => {
		let verb: Verb | undefined;
		const build = async (y: Argv): Promise<Argv> => {
			verb = (await entry.load()).verb;
			called = entry;
			failureStatus = verb.failureStatus;
			for (const [line, does] of verb.examples) y.example(`turnfs ${line}`, does);
			return verb.options(y).epilogue(describeStatuses(verb.exitStatuses));
		};
		const handle = async (argv: { C?: string; json?: boolean }) => {
			if (verb === undefined) throw new Error("a verb ran before it was loaded");
			if (rest.length > 0 && !verb.takesCommand) throw usageError("Only `turnfs run` takes a command after `--`.");
			if (process.platform !== "linux")
				throw new TurnfsError("TURNFS_UNSUPPORTED_PLATFORM", { platform: process.platform });
			const dir = startFolder(argv.C);
			// From here on we must not stand where a mount is about to go, nor keep one busy.
			process.chdir("/");
			status = await verb.run(argv, { dir, folderOption: argv.C, json: argv.json === true, rest });
		};
		// yargs awaits a promise here; its types know the synchronous form only.
		return to.command(
			entry.command,
			entry.does,
			build as unknown as (y: Argv) => Argv<{ C?: string; json?: boolean }>,
			handle,
		);
	};

	// The folder is given because yargs asks for the current one otherwise, which may have been deleted.
	const program = yargs([], "/")
		.scriptName("turnfs")
		.usage(
			"$0 [-C DIR] [VERB]\n\nUndo what an AI agent's turn did to a folder. Without a verb: status, the last turns, what to do next.",
		)
		.detectLocale(false)
		.wrap(100)
		.strict()
		.exitProcess(false)
		.showHelpOnFail(false)
		.fail((message: string | null, error: Error | undefined) => {
			throw error ?? usageError(asSentence(message ?? "The arguments can't be read", called));
		})
		.parserConfiguration({
			"boolean-negation": false,
			"camel-case-expansion": false,
			"dot-notation": false,
			"duplicate-arguments-array": false,
			"parse-numbers": false,
			"parse-positional-numbers": false,
		})
		.option("C", { type: "string", requiresArg: true, describe: "act as if started in this folder" })
		.option("json", { type: "boolean", describe: "results as JSON" })
		.help("help")
		.alias("help", "h")
		.version("version", packageVersion())
		.epilogue("turnfs VERB --help has examples and exit statuses.");
	for (const entry of VERBS) register(program, entry);
	if (overview) register(program, OVERVIEW);
	program.command("turn", "begin, mark and end turns (for agents' harnesses)", (y) => {
		for (const entry of TURN_VERBS) register(y, entry);
		return y.demandCommand(1, "`turnfs turn` needs one of begin, mark, end");
	});

	try {
		await program.parseAsync(own, {}, (_error: unknown, _argv: unknown, text: string) => {
			output = text;
		});
	} catch (error) {
		const wrongUsage = error instanceof Error && error.name === "YError";
		return reportError(wrongUsage ? usageError(asSentence(error.message, called)) : error, failureStatus);
	}
	if (output !== "") say(output);
	return status;
}

/** No verb, and no question for help or version. */
function needsOverview(args: string[]): boolean {
	const words = args.filter((word, i) => !word.startsWith("-") && args[i - 1] !== "-C");
	return (
		words.length === 0 && !args.some((word) => ["-h", "--help", "--version"].includes(word)) && args.at(-1) !== "-C"
	);
}

function commandLine(entry: VerbEntry): string {
	return `turnfs ${TURN_VERBS.includes(entry) ? "turn " : ""}${entry.command}`;
}

/** yargs' messages as one sentence in our words. */
function asSentence(message: string, called: VerbEntry | undefined): string {
	const line = message.trim().split("\n")[0] ?? "";
	if (line.startsWith("Not enough non-option arguments") && called !== undefined)
		return `An argument is missing: \`${commandLine(called).replace(/<(\w+)>/g, (_, name: string) => name.toUpperCase())}\`.`;
	const unknown = /^Unknown (?:argument|command)s?: (.*)$/.exec(line)?.[1];
	if (unknown !== undefined)
		return called === undefined
			? `turnfs doesn't know \`${unknown}\`.`
			: `\`${commandLine(called).split(/ [<[]/)[0]}\` doesn't take \`${unknown}\`.`;
	const following = /^Not enough arguments following: (.*)$/.exec(line)?.[1];
	if (following !== undefined) return `A value is missing after ${following.length === 1 ? "-" : "--"}${following}.`;
	return line.endsWith(".") ? line : `${line}.`;
}

const started = process.argv[1];
if (started !== undefined && realpathSync(started) === realpathSync(new URL(import.meta.url).pathname)) {
	process.exit(await main(process.argv.slice(2)));
}
