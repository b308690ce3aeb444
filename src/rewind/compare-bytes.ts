/** Whether the bytes at a place are already those of a target. */
import { roots } from "../daemon/project-context.js";
import type { DataExtent, Fsop, Place } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import type { Extent } from "../store/records.js";
import type { DataTarget, Piece } from "./types.js";

/**
 * Per piece of the target: true when the file has the same bytes there (for a hole: nothing but a hole).
 * @param unreadable the answer where permissions forbid to read
 */
export async function compareBytes(
	fsop: Fsop,
	place: Place,
	target: DataTarget,
	unreadable: boolean,
): Promise<boolean[]> {
	if (unreadable && !(await isReadable(fsop, place))) {
		return target.pieces.map(() => true);
	}
	const hasHoles = target.pieces.some((piece) => piece.kind === "hole");
	const data = hasHoles ? await orNull(fsop.extents(place)) : null;
	return Promise.all(
		target.pieces.map((piece) => {
			if (piece.kind === "hole") {
				return data !== null && !data.some((extent) => overlaps(extent, piece));
			}
			return sameAsStored(fsop, place, piece);
		}),
	);
}

async function isReadable(fsop: Fsop, place: Place): Promise<boolean> {
	try {
		await fsop.read(place, 0n, 1);
		return true;
	} catch (error) {
		if (error instanceof EngineError && error.code === "EACCES") {
			return false;
		}
		throw error;
	}
}

async function sameAsStored(fsop: Fsop, place: Place, piece: Piece): Promise<boolean> {
	if (piece.captured === undefined) {
		const found = await orNull(fsop.hash(place, piece.offset, piece.length));
		return found !== null && found.read === piece.length && found.xxh64 === piece.xxh64;
	}
	const stored: Place = { root: roots.storePlain, path: packPath(piece) };
	return (await orNull(fsop.equal(place, piece.offset, stored, piece.fileOffset, piece.length))) === true;
}

/** Below the store: the file that holds an extent's bytes. */
export function packPath(extent: Extent): string {
	return extent.kind === "pack"
		? `packs/${extent.file.toString(16).padStart(8, "0")}.pack`
		: `blobs/${extent.file.toString(16).padStart(16, "0")}`;
}

function overlaps(a: DataExtent, b: DataExtent): boolean {
	return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

/** What can't be read can't be known to be the same; the step that follows says why, if it is needed. */
async function orNull<T>(result: Promise<T>): Promise<T | null> {
	try {
		return await result;
	} catch (error) {
		if (error instanceof EngineError) {
			return null;
		}
		throw error;
	}
}
