/** Checks every source of a plan before its first step changes anything (design: P10). */
import { roots } from "../daemon/project-context.js";
import type { Fsop } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import { TurnfsError } from "../errors.js";
import type { Extent } from "../store/records.js";
import { packPath } from "./compare-bytes.js";
import type { Plan } from "./types.js";

/**
 * Every preserved file must be where it was kept; reads every captured extent that the pieces come from and compares its hash.
 * @throws TURNFS_STORE_DAMAGED at the first that isn't what was captured
 */
export async function verifySources(
	fsop: Fsop,
	store: string,
	{ sources: pieces, damaged }: Pick<Plan, "sources" | "damaged">,
): Promise<void> {
	const [gone] = damaged;
	if (gone !== undefined) {
		throw new TurnfsError("TURNFS_STORE_DAMAGED", {
			file: `${store}/${gone}`,
			reason: "the file that was kept there has gone or was changed",
		});
	}
	const extents = new Map<string, Extent>();
	for (const piece of pieces) {
		const captured: Extent = piece.captured ?? piece;
		extents.set(`${captured.kind} ${captured.file} ${captured.fileOffset} ${captured.length}`, captured);
	}
	await Promise.all(
		[...extents.values()].map(async (extent) => {
			const reason = await damage(fsop, extent);
			if (reason !== null) {
				throw new TurnfsError("TURNFS_STORE_DAMAGED", { file: `${store}/${packPath(extent)}`, reason });
			}
		}),
	);
}

async function damage(fsop: Fsop, extent: Extent): Promise<string | null> {
	try {
		const place = { root: roots.storePlain, path: packPath(extent) };
		const found = await fsop.hash(place, extent.fileOffset, extent.length);
		if (found.read !== extent.length) {
			return `it ends within the bytes kept at ${extent.fileOffset}`;
		}
		return found.xxh64 === extent.xxh64 ? null : `the bytes at ${extent.fileOffset} are not those that were kept`;
	} catch (error) {
		if (error instanceof EngineError) {
			return `it can't be read (${error.code})`;
		}
		throw error;
	}
}
