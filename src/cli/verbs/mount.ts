import { randomBytes } from "node:crypto";
import { TurnfsError } from "../../errors.js";
import { type Mounted, mountProject, warnBehind } from "../connect.js";
import { addMountOptions, readMountOptions } from "../mount-options.js";
import { remark, say, sayJson } from "../output.js";
import { printable } from "../render/names.js";
import { defineVerb } from "../verb.js";

export const verb = defineVerb({
	options: (args) =>
		addMountOptions(args)
			.usage("$0 mount [options]\n\nMount the project, so that changes in it are captured.")
			.option("at", { type: "string", requiresArg: true, describe: "mount there instead of over the project itself" })
			.option("foreground", { type: "boolean", default: false, describe: "stay until Ctrl-C, then unmount" }),
	examples: [
		["mount", "over the folder itself; shells that stand in it need `cd .`"],
		["mount --at /tmp/view", "the project stays plain, the view captures"],
		["mount --foreground", "for service managers: unmounts when it is ended"],
	],
	async run(args, context) {
		const mounted = await mountProject(context.dir, { ...readMountOptions(args), at: args.at, ifNeeded: false });
		try {
			if (context.json) sayJson(mounted.mount);
			else say(`${printable(mounted.place.project)} is mounted at ${printable(mounted.mount.mountpoint)}.`);
			warnBehind(mounted.mount.behind);
			if (args.foreground) await stayMounted(mounted);
		} finally {
			await mounted.client.close();
		}
		return 0;
	},
});

/** Holds the mount until somebody ends us or it is unmounted elsewhere. */
async function stayMounted({ client }: Mounted): Promise<void> {
	const token = randomBytes(16).toString("hex");
	const hold = await client.hold({ token, pid: process.pid, unmount: true });
	const told = new Promise<"told">((resolve) => {
		for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve("told"));
	});
	const end = await Promise.race([told, hold.broken.then(() => "broken" as const)]);
	if (end === "told") {
		try {
			await client.umount({ token });
		} catch (error) {
			if (!(error instanceof TurnfsError)) throw error;
			if (error.code === "TURNFS_MOUNT_BUSY") remark(`turnfs: ${error.message} It stays mounted until they have gone.`);
			// Unmounted by somebody else meanwhile: that is what we wanted.
			else if (error.code !== "TURNFS_NOT_MOUNTED") throw error;
		}
	}
	await hold.close();
}
