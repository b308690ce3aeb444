import { parseTurn } from "../arguments.js";
import { withProject } from "../connect.js";
import { colorsFor, STDOUT, say, sayJson } from "../output.js";
import { renderShow } from "../render/show.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args
			.usage(
				"$0 show TURN\n\nA turn's changes by command: A added, M modified, D deleted, R renamed, T another kind of thing.",
			)
			.positional("turn", { type: "string", demandOption: true, describe: "the turn's number, or `last`" }),
	examples: [
		["show last", "what the last turn did"],
		["show 3 --json", "for programs"],
	],
	run(args, context) {
		const turn = parseTurn(args.turn);
		return withProject(context.dir, async ({ client }) => {
			const shown = await client.show(turn);
			if (context.json) sayJson(shown);
			else say(renderShow(shown, colorsFor(STDOUT)));
			return 0;
		});
	},
});
