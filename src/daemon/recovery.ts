/**
 * Brings the index up to date when no engine writes any more: after an unmount, after a crash, at the daemon's start. The last span
 * ends, and what it touched gets its post-states, so that a crash is never a conflict.
 */
import type { Fsop } from "../engine/fsop.js";
import { ingestJournal } from "../store/ingest.js";
import { lastEngineActivityNs } from "../store/layout.js";
import type { HistoryStore } from "../store/store.js";
import { logLine } from "./log-line.js";
import { recordPostStates } from "./post-states.js";

/**
 * @param sawTheEnd the engine ended a moment ago: nobody can have changed much since. Otherwise what was changed after the
 * engine's last activity is somebody else's.
 * @returns how the session ended, "none" when nothing was ever mounted
 */
export async function finishSession(
	store: HistoryStore,
	fsop: Fsop,
	sawTheEnd: boolean,
): Promise<"unmounted" | "crashed" | "none"> {
	// Ingest deletes the journal's files, whose times are a part of this.
	const lastActivityNs = lastEngineActivityNs(store.folder);
	const report = await ingestJournal(store, { engineGone: true });
	for (const { file, droppedBytes, reason } of report.torn) {
		logLine(`${file}: ${droppedBytes} bytes cut off: ${reason}`);
	}
	const meta = await store.meta();
	if (meta.session === "") return "none";
	const how = meta.sessionEnd ?? "crashed";
	if (meta.sessionEnd === null) {
		await store.closeLastSpan(lastActivityNs);
		await store.endSession("crashed");
	}
	await completePostStates(store, fsop, sawTheEnd && how === "unmounted" ? {} : { lastActivityNs });
	return how;
}

/** Post-states of every span that has ended without them, oldest first. */
export async function completePostStates(
	store: HistoryStore,
	fsop: Fsop,
	options: { lastActivityNs?: bigint; catchUp?: () => Promise<void> },
): Promise<void> {
	const newest = (await store.lastSpan())?.epoch ?? 0;
	for (let epoch = (await store.lastPostEpoch()) + 1; epoch <= newest; epoch++) {
		const span = await store.span(epoch);
		if (span === null || span.endNs === null) continue;
		const next = await store.span(epoch + 1);
		const { lastSeq } = await store.meta();
		await recordPostStates(store, fsop, epoch, next?.firstSeq ?? lastSeq + 1n, {
			...(options.lastActivityNs === undefined ? {} : { lastActivityNs: options.lastActivityNs }),
			position: async () => (await store.meta()).lastSeq,
			catchUp: options.catchUp ?? (async () => {}),
		});
	}
}
