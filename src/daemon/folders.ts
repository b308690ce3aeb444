/**
 * The project's and the store's folders, opened once. Everything below them is reached through these descriptors, so that it
 * makes no difference whether a mount lies on top.
 */
import { closeSync, constants, openSync } from "node:fs";
import { TurnfsError } from "../errors.js";
import { mountOf, readMounts, TURNFS_TYPE } from "../project/mount-table.js";
import { isMountedInfo, type RuntimeInfo } from "./runtime-files.js";

export interface Folders {
	/** Real paths, for people. */
	project: string;
	store: string;
	projectFd: number;
	storeFd: number;
	/** `/proc/self/fd/<n>` of this process. */
	projectPath: string;
	storePath: string;
}

/**
 * @param info the runtime file, when there is one: while mounted the keeper has both folders open
 * @throws TURNFS_NO_SUCH_FOLDER, TURNFS_STORE_UNUSABLE
 */
export function openFolders(project: string, store: string, info: RuntimeInfo | null): Folders {
	const mounted = info !== null && isMountedInfo(info);
	const keeper = mounted ? `/proc/${info.keeperPid}/fd` : null;
	if (keeper === null && mountOf(project, readMounts())?.type === TURNFS_TYPE) {
		throw new TurnfsError("TURNFS_NO_SUCH_FOLDER", {
			path: project,
			reason: "a mount is on top of it whose engine is not known here",
		});
	}
	const projectFd = openFolder(keeper === null ? project : `${keeper}/${info?.projectFd}`, (reason, cause) => {
		return new TurnfsError("TURNFS_NO_SUCH_FOLDER", { path: project, reason }, cause);
	});
	let storeFd: number;
	try {
		storeFd = openFolder(keeper === null ? store : `${keeper}/${info?.storeFd}`, (reason, cause) => {
			return new TurnfsError("TURNFS_STORE_UNUSABLE", { store, reason }, cause);
		});
	} catch (error) {
		closeSync(projectFd);
		throw error;
	}
	return {
		project,
		store,
		projectFd,
		storeFd,
		projectPath: `/proc/self/fd/${projectFd}`,
		storePath: `/proc/self/fd/${storeFd}`,
	};
}

export function closeFolders(folders: Folders): void {
	closeSync(folders.projectFd);
	closeSync(folders.storeFd);
}

function openFolder(path: string, fail: (reason: string, cause: unknown) => TurnfsError): number {
	try {
		return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
	} catch (error) {
		throw fail((error as Error).message, error);
	}
}
