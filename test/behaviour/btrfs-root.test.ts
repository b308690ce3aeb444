import { behaviourSuite } from "./suite.js";

behaviourSuite({
	backing: "btrfs",
	as: "root",
	unlike: {
		ioctl_clone: "the kernel passes no FICLONE on to FUSE filesystems",
		times_moved_by_file_operations:
			"btrfs leaves the times of truncate(2) to the same size alone; the engine truncates by descriptor, which sets them",
		xattr_trusted_is_hidden_from_others: "btrfs lists names of trusted attributes to everybody, FUSE to root only",
	},
});
