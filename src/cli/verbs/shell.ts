import { parseAnchor } from "../arguments.js";
import { addMountOptions, readMountOptions } from "../mount-options.js";
import { remark } from "../output.js";
import { runTurn } from "../turn-run.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addMountOptions(args)
			.usage("$0 shell [options]\n\nOpen your shell ($SHELL) as one turn.")
			.option("label", { type: "string", requiresArg: true, describe: "name of the turn" })
			.option("anchor", { type: "string", requiresArg: true, describe: "JSON to keep with the turn" }),
	examples: [
		["shell", "work in a turn; `exit` ends it"],
		["shell --label 'try the new parser'", "with a name to find it by"],
	],
	exitStatuses: {
		n: "the shell's own status",
		"128+n": "it was ended by signal n",
		125: "turnfs failed before it ran",
	},
	failureStatus: 125,
	async run(args, context) {
		return runTurn(context.dir, {
			command: [process.env.SHELL || "/bin/sh"],
			label: args.label ?? "shell",
			anchor: parseAnchor(args.anchor),
			mount: readMountOptions(args),
			folderOption: context.folderOption,
			onBegin: (turn) => remark(`turnfs: this shell is turn ${turn}; \`exit\` ends it.`),
		});
	},
});
