import { parsePositive } from "../arguments.js";
import { withProject } from "../connect.js";
import { colorsFor, STDOUT, say, sayJson } from "../output.js";
import { renderLog } from "../render/log.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args
			.usage("$0 log [-n N] [--all]\n\nList the turns, newest first.")
			.option("n", { type: "string", requiresArg: true, describe: "only the newest N" })
			.option("all", { type: "boolean", default: false, describe: "rewound turns and the times between turns too" }),
	examples: [
		["log -n 5", "the last five turns"],
		["log --all --json", "everything, for programs"],
	],
	run(args, context) {
		const limit = args.n === undefined ? {} : { n: parsePositive(args.n, "-n") };
		return withProject(context.dir, async ({ client }) => {
			const entries = await client.log({ ...limit, all: args.all });
			if (context.json) sayJson(entries);
			else say(renderLog(entries, colorsFor(STDOUT)));
			return 0;
		});
	},
});
