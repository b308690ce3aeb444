import { withProject } from "../connect.js";
import { addRewindOptions, performRewind, REWIND_STATUSES, type RewindCall } from "../rewinding.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addRewindOptions(args).usage("$0 undo [options]\n\nRewind the last turn: the same as `turnfs rewind last`."),
	examples: [
		["undo", "shows the plan and asks"],
		["undo --yes", "doesn't ask"],
	],
	exitStatuses: REWIND_STATUSES,
	run: (args, context) =>
		withProject(context.dir, ({ client }) => {
			const call: RewindCall = (to, dryRun, plan) =>
				to.rewind({ turn: plan?.turn ?? "last", overwrite: args.overwrite, dryRun });
			return performRewind("rewind", client, call, args, context);
		}),
});
