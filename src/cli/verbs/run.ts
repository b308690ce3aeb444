import { parseAnchor, usageError } from "../arguments.js";
import { addMountOptions, readMountOptions } from "../mount-options.js";
import { shortCommand } from "../render/names.js";
import { runTurn } from "../turn-run.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addMountOptions(args)
			.usage("$0 run [options] -- COMMAND [ARGUMENT…]\n\nRun a command as one turn.")
			.option("label", { type: "string", requiresArg: true, describe: "name of the turn; by default the command" })
			.option("anchor", { type: "string", requiresArg: true, describe: "JSON to keep with the turn" }),
	examples: [
		["run -- npm install", "everything that npm changes is one turn"],
		["run --label 'fix the tests' -- agent --print 'fix the tests'", "a whole agent run as one turn"],
		["run -C my-project -- bash -c 'sed -i s/a/b/ *.ts'", "in another folder"],
	],
	exitStatuses: {
		n: "the command's own status",
		"128+n": "the command was ended by signal n",
		125: "turnfs failed before it ran",
		126: "it can't be executed",
		127: "it was not found",
	},
	takesCommand: true,
	failureStatus: 125,
	async run(args, context) {
		if (context.rest.length === 0)
			throw usageError("Put the command to run after `--`, for example `turnfs run -- npm install`.");
		return runTurn(context.dir, {
			command: context.rest,
			label: args.label ?? shortCommand(context.rest, 80),
			anchor: parseAnchor(args.anchor),
			mount: readMountOptions(args),
			folderOption: context.folderOption,
		});
	},
});
