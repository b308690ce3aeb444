import { behaviourSuite } from "./suite.js";

behaviourSuite({
	backing: "xfs",
	as: "root",
	unlike: {
		space_unshare: "the kernel passes no FALLOC_FL_UNSHARE_RANGE on to FUSE filesystems",
		ioctl_clone: "the kernel passes no FICLONE on to FUSE filesystems",
		times_moved_by_file_operations:
			"xfs leaves the times of truncate(2) to the same size alone; the engine truncates by descriptor, which sets them",
	},
});
