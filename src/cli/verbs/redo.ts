import { withProject } from "../connect.js";
import { addRewindOptions, performRewind, REWIND_STATUSES, type RewindCall } from "../rewinding.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addRewindOptions(args).usage("$0 redo [options]\n\nUndo the last rewind. Possible until the next turn begins."),
	examples: [
		["redo", "shows the plan and asks"],
		["redo --yes", "doesn't ask"],
	],
	exitStatuses: REWIND_STATUSES,
	run: (args, context) =>
		withProject(context.dir, ({ client }) => {
			const call: RewindCall = (to, dryRun) => to.redo({ overwrite: args.overwrite, dryRun });
			return performRewind("redo", client, call, args, context);
		}),
});
