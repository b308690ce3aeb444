import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";
import { TurnfsError } from "../errors.js";

/**
 * The engine's executable: what `TURNFS_ENGINE` names (sanitizer builds), else the one built at install.
 * @throws TURNFS_ENGINE_MISSING, TURNFS_UNSUPPORTED_PLATFORM
 */
export function enginePath(): string {
	if (process.platform !== "linux")
		throw new TurnfsError("TURNFS_UNSUPPORTED_PLATFORM", { platform: process.platform });
	// dist/engine/… or src/engine/…: two folders below the package either way.
	const path =
		process.env.TURNFS_ENGINE || fileURLToPath(new URL("../../build/Release/turnfs-engine", import.meta.url));
	try {
		accessSync(path, constants.X_OK);
	} catch (error) {
		throw new TurnfsError("TURNFS_ENGINE_MISSING", { path }, error);
	}
	return path;
}
