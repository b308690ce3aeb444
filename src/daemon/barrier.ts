/**
 * The barrier at a span's beginning. What happened through the mount before it belongs to the span that ends, stores into mapped
 * files included: those pages are flushed first, with no request held back (design: barrier).
 */
import type { Position, SpanRequest } from "../engine/control.js";
import type { Fsop } from "../engine/fsop.js";
import { MARKER } from "../store/layout.js";
import { joinPath, toByteString } from "../text/byte-string.js";
import type { EngineMount } from "./engine-mount.js";

/** A process that truncates without end must not hold a turn up for ever: what races with the flush may fall on either side. */
const MAX_FLUSHES = 20;

export async function passBarrier(mount: EngineMount, fsop: Fsop, span: SpanRequest): Promise<Position> {
	const door = await mount.openDoor();
	try {
		const mountpoint = toByteString(mount.mountpoint);
		const marker = joinPath(door, MARKER);
		for (let flushes = 0; flushes < MAX_FLUSHES; flushes++) {
			await mount.control.flushBegin();
			let again: boolean;
			try {
				await fsop.flush(mountpoint, marker);
			} finally {
				again = await mount.control.flushEnd();
			}
			if (!again) break;
		}
		return await mount.control.advance(span);
	} finally {
		await mount.closeDoor();
	}
}
