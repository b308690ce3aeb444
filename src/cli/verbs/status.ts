import { withProject } from "../connect.js";
import { colorsFor, STDOUT, say, sayJson } from "../output.js";
import { renderStatus } from "../render/status.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args.usage("$0 status\n\nWhat is mounted, which turn is open, how much is kept, and what is wrong."),
	examples: [["status --json", "for programs"]],
	run: (_args, context) =>
		withProject(context.dir, async ({ client }) => {
			const status = await client.status();
			if (context.json) sayJson(status);
			else say(renderStatus(status, colorsFor(STDOUT)));
			return 0;
		}),
});
