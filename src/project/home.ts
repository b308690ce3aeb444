import { realpathSync } from "node:fs";
import { homedir } from "node:os";

/** Real path of the caller's home folder. Paths are compared with it, and a home folder is often behind a symlink. */
export function homeFolder(env: NodeJS.ProcessEnv = process.env): string {
	const home = env.HOME?.startsWith("/") ? env.HOME : homedir();
	try {
		return realpathSync.native(home);
	} catch {
		return home.replace(/(.)\/+$/, "$1"); // It doesn't exist (service accounts), so nothing is in it.
	}
}
