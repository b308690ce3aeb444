/** A turn's changes as JSON, for `show` and the summary that `run` prints. */
import type { Change, ChangeSide, ShowResponse } from "../daemon/api.js";
import type { PostState, ProcessInfo, Turn } from "../store/records.js";
import type { HistoryStore, PostKey } from "../store/store.js";
import { pathToJson, showBytes } from "../text/byte-string.js";
import { toIsoTime } from "../text/time.js";
import { listChanges, type PathChange, type SideState, turnStretch } from "./changes.js";
import { fileKind, permissionsText } from "./file-kind.js";

/** @param live present states of what an open turn has touched since its last mark */
export async function showTurn(store: HistoryStore, turn: Turn, live: [PostKey, PostState][]): Promise<ShowResponse> {
	const found = await listChanges(store, turnStretch(turn), live);
	const processes = await loadProcesses(store, found.changes);
	return {
		turn: turn.turn,
		label: turn.label,
		state: turn.state,
		begin: toIsoTime(turn.beginNs),
		end: turn.endNs === null ? null : toIsoTime(turn.endNs),
		changes: found.changes.map((change) => changeToJson(change, processes)),
		skipped: found.skipped.map(({ path, reason }) => ({ ...pathToJson(path), reason })),
		behind: turn.behind,
	};
}

async function loadProcesses(store: HistoryStore, changes: PathChange[]): Promise<Map<string, ProcessInfo>> {
	const processes = new Map<string, ProcessInfo>();
	for (const proc of new Set(changes.map((change) => change.proc))) {
		const found = proc === null ? null : await store.process(proc);
		if (proc !== null && found !== null) processes.set(proc, found);
	}
	return processes;
}

function changeToJson(change: PathChange, processes: Map<string, ProcessInfo>): Change {
	const process = change.proc === null ? undefined : processes.get(change.proc);
	const from = change.from === null ? null : pathToJson(change.from);
	return {
		...pathToJson(change.path),
		status: change.status,
		...(from === null ? {} : { from: from.path }),
		...(from?.pathBytes === undefined ? {} : { fromBytes: from.pathBytes }),
		kind: fileKind((change.after ?? change.before)?.mode ?? 0),
		before: sideToJson(change.before),
		after: sideToJson(change.after),
		by: process === undefined ? null : { pid: process.pid, command: commandText(process) },
		...(change.skipped === null ? {} : { skipped: change.skipped }),
	};
}

function sideToJson(side: SideState | null): ChangeSide | null {
	if (side === null) return null;
	const kind = fileKind(side.mode);
	// What stat says of other kinds is the filesystem's business, not a size.
	const sized = kind === "file" || kind === "symlink";
	return {
		size: sized && side.size !== null ? Number(side.size) : null,
		permissions: permissionsText(side.mode),
	};
}

/** As one would type it; the short name where the command line could not be read. */
function commandText(process: ProcessInfo): string {
	if (process.command.length === 0) return showBytes(process.comm);
	return process.command.map((word) => quoteWord(showBytes(word))).join(" ");
}

function quoteWord(word: string): string {
	return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
