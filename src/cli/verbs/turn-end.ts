import { parsePositive } from "../arguments.js";
import { withProject } from "../connect.js";
import { say, sayJson } from "../output.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args
			.usage("$0 turn end [TURN]\n\nEnd the open turn. Ending a turn that has ended is fine.")
			.positional("turn", { type: "string", describe: "the turn's number; by default the open one" }),
	examples: [["turn end", "after the agent's turn"]],
	run(args, context) {
		const turn = args.turn === undefined ? null : parsePositive(args.turn, "TURN");
		return withProject(context.dir, async ({ client }) => {
			const ended = await client.turnEnd({ turn });
			if (context.json) sayJson(ended);
			else if (ended.turn === null) say("No turn is open.");
			else say(ended.endedNow ? `Turn ${ended.turn} has ended.` : `Turn ${ended.turn} had ended before.`);
			return 0;
		});
	},
});
