import { parseTurn } from "../arguments.js";
import { withProject } from "../connect.js";
import { addRewindOptions, performRewind, REWIND_STATUSES, type RewindCall } from "../rewinding.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addRewindOptions(args)
			.usage("$0 rewind TURN [options]\n\nGive the folder back as it stood when TURN began.")
			.positional("turn", { type: "string", demandOption: true, describe: "the turn's number, or `last`" })
			.option("exact", {
				type: "boolean",
				default: false,
				describe: "undo everybody's changes since, not only those of turns (implies --overwrite)",
			}),
	examples: [
		["rewind 3", "shows the plan and asks"],
		["rewind last --dry-run", "only shows the plan"],
		["rewind 3 --yes --json", "for programs"],
	],
	exitStatuses: REWIND_STATUSES,
	run(args, context) {
		const turn = parseTurn(args.turn);
		return withProject(context.dir, ({ client }) => {
			const request = { overwrite: args.overwrite || args.exact, exact: args.exact };
			const call: RewindCall = (to, dryRun, plan) => to.rewind({ ...request, turn: plan?.turn ?? turn, dryRun });
			return performRewind("rewind", client, call, { ...args, overwrite: request.overwrite }, context);
		});
	},
});
