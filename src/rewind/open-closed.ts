/**
 * An ordinary user's own folders can be shut to themselves: a turn that ends with `chmod 000`. To look into them they are opened,
 * in the rewind's own span and through the mount, so that it is captured; the plan's last steps give every folder its
 * final permissions.
 */
import { roots } from "../daemon/project-context.js";
import { type FileStat, type Fsop, S_IFDIR, S_IFLNK, S_IFMT } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import type { ByteString } from "../store/records.js";
import { joinPath } from "../text/byte-string.js";

const OPEN_DIRECTORY = 0o700;
const OPEN_FILE = 0o600;

/**
 * Opens what bars the way to paths.
 * @param opened what was opened before: path → how it was; more is added
 * @returns true when something was opened, so that a new look is worth while
 */
export async function openClosed(
	fsop: Fsop,
	closed: readonly ByteString[],
	uid: number,
	opened: Map<ByteString, FileStat>,
): Promise<boolean> {
	const { size } = opened;
	for (const path of closed) {
		let at = "";
		for (const name of ["", ...path.split("/")]) {
			at = joinPath(at, name);
			const stat = await statOrNull(fsop, at);
			if (stat === null) {
				break;
			}
			// A file's xattrs can be read only by who may read the file.
			const open = (stat.mode & S_IFMT) === S_IFDIR ? OPEN_DIRECTORY : OPEN_FILE;
			const isShut = (stat.mode & S_IFMT) !== S_IFLNK && stat.uid === uid && (stat.mode & open) !== open;
			if (isShut && !opened.has(at)) {
				await fsop.attrs({ root: roots.mount, path: at }, { mode: (stat.mode | open) & 0o7777 });
				opened.set(at, stat);
			}
		}
	}
	return opened.size > size;
}

/** Nothing will be changed after all. */
export async function closeAgain(fsop: Fsop, opened: ReadonlyMap<ByteString, FileStat>): Promise<void> {
	for (const [path, stat] of [...opened].reverse()) {
		await fsop.attrs({ root: roots.mount, path }, { mode: stat.mode & 0o7777 });
	}
}

async function statOrNull(fsop: Fsop, path: ByteString): Promise<FileStat | null> {
	try {
		return await fsop.statIfPresent({ root: roots.project, path });
	} catch (error) {
		if (error instanceof EngineError) {
			return null;
		}
		throw error;
	}
}
