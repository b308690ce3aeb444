import { type MountEntry, TURNFS_TYPE } from "./mount-table.js";

/**
 * Filesystems that were mounted inside a turnfs mount: whoever works there does not go through turnfs. What had been mounted
 * in the folder before turnfs was is not among them, because it is reached through the engine.
 */
export function findUnprotectedMounts(mountpoint: string, mounts: MountEntry[]): MountEntry[] {
	const above = new Set(
		mounts.filter((mount) => mount.type === TURNFS_TYPE && mount.at === mountpoint).map(({ id }) => id),
	);
	const found: MountEntry[] = [];
	// A mount stands in the table after the one it is mounted on.
	for (const mount of mounts) {
		if (!above.has(mount.parent) || above.has(mount.id)) continue;
		above.add(mount.id);
		found.push(mount);
	}
	return found;
}
