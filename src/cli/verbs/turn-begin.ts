import { parseAnchor, parsePid } from "../arguments.js";
import { warnBehind, withProject } from "../connect.js";
import { say, sayJson } from "../output.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args
			.usage("$0 turn begin [options]\n\nBegin a turn in the mounted project and print its number.")
			.option("label", { type: "string", requiresArg: true, describe: "name of the turn" })
			.option("anchor", { type: "string", requiresArg: true, describe: "JSON to keep with the turn" })
			.option("session", {
				type: "string",
				requiresArg: true,
				describe: "whose turn it is; a begin ends its own session's open turn",
			})
			.option("owner", {
				type: "string",
				requiresArg: true,
				describe: "process id: only it and its descendants count as the turn's",
			}),
	examples: [
		["turn begin --label 'rename the API'", "before the agent's turn"],
		["turn begin --session $ID --owner $PPID", "from a harness: only its own processes are the turn's"],
	],
	run(args, context) {
		const request = {
			label: args.label ?? null,
			anchor: parseAnchor(args.anchor),
			session: args.session ?? null,
			ownerPid: args.owner === undefined ? null : parsePid(args.owner, "--owner"),
			callerPid: process.ppid > 1 ? process.ppid : null,
		};
		return withProject(context.dir, async ({ client }) => {
			const begun = await client.turnBegin(request);
			warnBehind(begun.behind);
			if (context.json) sayJson({ turn: begun.turn });
			else say(String(begun.turn));
			return 0;
		});
	},
});
