import { parseAnchor } from "../arguments.js";
import { withProject } from "../connect.js";
import { say, sayJson } from "../output.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args
			.usage("$0 turn mark [options]\n\nSet a numbered mark inside the open turn, for instance after each tool call.")
			.option("label", { type: "string", requiresArg: true, describe: "name of the mark" })
			.option("anchor", { type: "string", requiresArg: true, describe: "JSON to keep with the mark" }),
	examples: [["turn mark --label 'before the tests'", "prints 3.1, 3.2 …"]],
	run(args, context) {
		const request = { label: args.label ?? null, anchor: parseAnchor(args.anchor) };
		return withProject(context.dir, async ({ client }) => {
			const marked = await client.turnMark(request);
			if (context.json) sayJson(marked);
			else say(`${marked.turn}.${marked.mark}`);
			return 0;
		});
	},
});
