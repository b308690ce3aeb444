import { TurnfsError } from "../../errors.js";
import { withProject } from "../connect.js";
import { surroundingTurn } from "../inside-turn.js";
import { say, sayJson } from "../output.js";
import { printable } from "../render/names.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		args
			.usage("$0 umount [--lazy]\n\nUnmount the project. The folder stays as it is; so does the history.")
			.option("lazy", {
				type: "boolean",
				default: false,
				describe: "take it away at once; programs inside keep their view until they leave",
			}),
	examples: [
		["umount", "refused while programs use it, naming them"],
		["umount --lazy", "at once"],
	],
	run: (args, context) =>
		withProject(context.dir, async ({ place, client }) => {
			const turn = await surroundingTurn(client, place.project);
			if (turn !== null) throw new TurnfsError("TURNFS_INSIDE_TURN", { verb: "umount", turn });
			const done = await client.umount({ lazy: args.lazy });
			if (context.json) sayJson(done);
			else say(`${printable(done.mountpoint)} is unmounted.`);
			return 0;
		}),
});
