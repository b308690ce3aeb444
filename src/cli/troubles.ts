import type { StatusResponse } from "../daemon/api.js";
import { TurnfsError } from "../errors.js";
import { readMounts } from "../project/mount-table.js";
import { findUnprotectedMounts } from "../project/sub-mounts.js";

/** The daemon's status, with the mounts that this process sees inside the project: in another mount namespace there are others. */
export function withSubMounts(status: StatusResponse): StatusResponse {
	if (status.mountpoint === null) return status;
	const problems = findUnprotectedMounts(status.mountpoint, readMounts()).map(({ at, type }) => {
		const { code, message, hint } = new TurnfsError("TURNFS_SUB_MOUNT", { path: at, type });
		return { code, message, hint };
	});
	return { ...status, problems: [...status.problems, ...problems] };
}
