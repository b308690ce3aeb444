import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The top of the git work tree that a folder is in, or null. Only `.git` (a folder, or a file in worktrees and submodules) is
 * looked for: turnfs works without git installed.
 * @param stop the walk ends before this folder (the home folder) and where the filesystem changes
 */
export function findGitTop(folder: string, stop: string): string | null {
	const device = lstatSync(folder).dev;
	for (let at = folder; at !== stop && at !== "/"; at = dirname(at)) {
		try {
			if (lstatSync(at).dev !== device) return null;
			lstatSync(join(at, ".git"));
			return at;
		} catch (error) {
			const code = (error as NodeJS.ErrnoException).code;
			if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "EACCES") throw error;
		}
	}
	return null;
}
