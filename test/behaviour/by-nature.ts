/**
 * Where a mount can't or must not answer as the plain folder does: the result that it must give instead, and why. Everything
 * else has to be equal. A case that stands here and gives the folder's result after all fails too.
 */
export interface ByNature {
	/** What the mount must answer. */
	mount: unknown;
	reason: string;
}

export const byNature: Record<string, ByNature> = {
	rename_whiteout: {
		mount: ["EINVAL", ["a"]],
		reason: "RENAME_WHITEOUT leaves a device node that no record speaks of: refused as a filesystem without it does",
	},
	space_fallocate_collapse_and_insert: {
		mount: [
			["ENOTSUP", "abcdefgh"],
			["ENOTSUP", "abcdefgh"],
		],
		reason: "the kernel passes only allocating, punching and zeroing on to FUSE filesystems",
	},
	ioctl_set_flags: {
		mount: "ENOTTY",
		reason: "flags such as immutable would be changed past the capture: no ioctl is passed on",
	},
};
