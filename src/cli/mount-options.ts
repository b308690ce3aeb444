/** The options of every verb that may mount: run, shell, mount. */
import type { Argv } from "yargs";
import { parseSize } from "./arguments.js";
import type { MountOptions } from "./connect.js";

export interface MountArguments {
	store: string | undefined;
	"max-preimage": string | undefined;
	"on-capture-failure": "fail" | "skip" | undefined;
}

export function addMountOptions<T>(args: Argv<T>): Argv<T & MountArguments> {
	return args
		.option("store", { type: "string", requiresArg: true, describe: "keep the history in this folder" })
		.option("max-preimage", {
			type: "string",
			requiresArg: true,
			describe: "don't keep more than this size of one file (64K, 2G); the turn lists it as skipped",
		})
		.option("on-capture-failure", {
			choices: ["fail", "skip"] as const,
			describe: "when something can't be kept: fail the operation (default), or let it pass and list it as skipped",
		}) as unknown as Argv<T & MountArguments>;
}

export function readMountOptions(args: MountArguments): Omit<MountOptions, "ifNeeded" | "at"> {
	const size = args["max-preimage"];
	return {
		store: args.store,
		maxPreimageBytes: size === undefined ? undefined : parseSize(size, "--max-preimage"),
		onCaptureFailure: args["on-capture-failure"],
	};
}
