import { rmSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listChanges, summarize, turnStretch } from "../../src/history/changes.js";
import { listLog } from "../../src/history/log.js";
import { showTurn } from "../../src/history/show.js";
import { ingestJournal } from "../../src/store/ingest.js";
import type { PostState } from "../../src/store/records.js";
import { HistoryStore, type PostKey } from "../../src/store/store.js";
import { digestXattrs } from "../../src/store/xattr-digest.js";
import { JournalBuilder, makeStoreFolders } from "./store-journal-builder.js";

let folder: string;
let store: HistoryStore;

beforeEach(async () => {
	folder = makeStoreFolders();
	store = await HistoryStore.open(folder);
});
afterEach(async () => {
	await store.close();
	rmSync(folder, { recursive: true });
});

const FILE = 0o100644;
const FOLDER = 0o040755;
const LINK = 0o120777;

function state(change: Partial<PostState>): PostState {
	return {
		seq: 99n,
		object: null,
		unknown: false,
		mode: 0,
		uid: 0,
		gid: 0,
		size: 0n,
		mtimeNs: 10n,
		ctimeNs: 11n,
		path: "",
		stored: false,
		xattrs: "",
		...change,
	};
}
const entry = (dir: string, name: string): PostKey => ({ type: "entry", dir, name });
const object = (id: string): PostKey => ({ type: "object", object: id });

/** Turn 1 is span 1; span 2 follows. */
function turn(): JournalBuilder {
	return new JournalBuilder(1).span(1, 1, 1, 100, { turn: 1, label: "work" }).process(1, 77, ["mv", "it's", "b"]);
}

async function changesOf(builder: JournalBuilder, posts: [PostKey, PostState][]) {
	builder.span(2, 3, 0, 200).seal().writeTo(folder);
	await ingestJournal(store, { engineGone: false });
	await store.putPostStates(1, posts);
	return listChanges(store, turnStretch(await store.requireTurn(1)));
}

const rows = (found: Awaited<ReturnType<typeof changesOf>>) =>
	found.changes.map(({ status, path, from }) => (from === null ? `${status} ${path}` : `${status} ${from} → ${path}`));

test("a name that was free and is taken is added; the other way round deleted; in between nothing", async () => {
	const found = await changesOf(
		turn().entry(1, "new", 0).entry(1, "gone", 5).preserved(5, "preserved/05/x").entry(1, "temporary", 0),
		[
			[entry("1", "new"), state({ object: "9", mode: FILE, size: 3n, path: "new" })],
			[entry("1", "gone"), state({ path: "gone" })],
			[object("5"), state({ object: "5", mode: 0o100600, size: 8n, path: "preserved/05/x", stored: true })],
			[entry("1", "temporary"), state({ path: "temporary" })],
		],
	);
	expect(rows(found)).toEqual(["D gone", "A new"]);
	expect(found.changes[0]).toMatchObject({ before: { mode: 0o100600, size: 8n }, after: null });
	expect(summarize(found)).toEqual({ counts: { added: 1, modified: 0, deleted: 1, renamed: 0 }, bytes: 8, skipped: 0 });
});

test("an object that left one name and came to another was renamed, whatever was there", async () => {
	const found = await changesOf(turn().entry(1, "a", 5).entry(1, "b", 6).entry(1, "x", 7).entry(1, "y", 8), [
		[entry("1", "a"), state({ path: "a" })],
		[entry("1", "b"), state({ object: "5", mode: FILE, size: 2n, path: "b" })],
		// These two have changed places.
		[entry("1", "x"), state({ object: "8", mode: FILE, path: "x" })],
		[entry("1", "y"), state({ object: "7", mode: FILE, path: "y" })],
	]);
	expect(rows(found)).toEqual(["R a → b", "R y → x", "R x → y"]);
});

test("a save by way of a new file is a modification, another kind of thing is T", async () => {
	const found = await changesOf(turn().entry(1, "saved", 5).attrs(5, 20, "saved").entry(1, "kind", 6), [
		[entry("1", "saved"), state({ object: "9", mode: 0o100755, size: 30n, path: "saved" })],
		[entry("1", "kind"), state({ object: "10", mode: LINK, size: 1n, path: "kind" })],
	]);
	expect(rows(found)).toEqual(["T kind", "M saved"]);
	expect(found.changes[1]).toMatchObject({ before: { mode: FILE, size: 20n }, after: { mode: 0o100755, size: 30n } });
});

test("what moved away while a new file took its name: one renamed, one added", async () => {
	const found = await changesOf(turn().entry(1, "log", 5).entry(1, "log.1", 0), [
		[entry("1", "log"), state({ object: "9", mode: FILE, path: "log" })],
		[entry("1", "log.1"), state({ object: "5", mode: FILE, path: "log.1" })],
	]);
	expect(rows(found)).toEqual(["A log", "R log → log.1"]);
});

test("in place: bytes, permissions and xattrs count, a folder's times don't", async () => {
	const same = { uid: 0, gid: 0, size: 4n, mtimeNs: 10n, xattrs: digestXattrs({ "user.x": "value" }) };
	const found = await changesOf(
		turn()
			.attrs(5, 4, "bytes")
			.data(5, 4, [])
			.attrs(6, 4, "mode")
			.attrs(7, 4, "xattr")
			.attrs(8, 4, "dir", FOLDER)
			.attrs(9, 4, "linked-only"),
		[
			[object("5"), state({ ...same, object: "5", mode: FILE, path: "bytes" })],
			[object("6"), state({ ...same, object: "6", mode: 0o100755, path: "mode" })],
			[object("7"), state({ ...same, object: "7", mode: FILE, xattrs: "", path: "xattr" })],
			[object("8"), state({ ...same, object: "8", mode: FOLDER, size: 9n, mtimeNs: 99n, path: "dir" })],
			[object("9"), state({ ...same, object: "9", mode: FILE, path: "linked-only" })],
		],
	);
	expect(rows(found)).toEqual(["M bytes", "M mode", "M xattr"]);
});

test("paths are those of the turn's end; of what is gone with its folder, where it was", async () => {
	const found = await changesOf(turn().entry(5, "deep", 6, "old/folder").attrs(7, 1, "lib/x").data(7, 1, []), [
		[entry("5", "deep"), state({ path: "" })],
		[object("7"), state({ object: "7", mode: FILE, path: "core/x" })],
	]);
	expect(rows(found)).toEqual(["M core/x", "D old/folder/deep"]);
});

test("another's touches in the turn are not the turn's; its left-over process's later ones are", async () => {
	const builder = turn();
	builder.lane = 0;
	builder.entry(1, "users", 0);
	builder.span(2, 3, 0, 200);
	builder.lane = 1;
	builder.entry(1, "late", 0).seal().writeTo(folder);
	await ingestJournal(store, { engineGone: false });
	await store.putPostStates(1, [[entry("1", "users"), state({ object: "9", mode: FILE, path: "users" })]]);
	await store.putPostStates(2, [[entry("1", "late"), state({ object: "8", mode: FILE, path: "late" })]]);
	expect(rows(await listChanges(store, turnStretch(await store.requireTurn(1))))).toEqual(["A late"]);
});

test("show is the documented JSON: kinds, octal permissions, who, bytes for names that are no UTF-8", async () => {
	const builder = turn().entry(1, "caf\xe9", 0, "", 1).entry(1, "dir", 0);
	await changesOf(builder, [
		[entry("1", "caf\xe9"), state({ object: "9", mode: 0o104711, size: 3n, path: "caf\xe9" })],
		[entry("1", "dir"), state({ object: "10", mode: FOLDER, size: 4096n, path: "dir" })],
	]);
	expect(await showTurn(store, await store.requireTurn(1), [])).toMatchObject({
		turn: 1,
		label: "work",
		state: "ended",
		begin: "1970-01-01T00:00:00.000000100Z",
		changes: [
			{
				path: "caf\ufffd",
				pathBytes: Buffer.from("caf\xe9", "latin1").toString("base64"),
				status: "A",
				kind: "file",
				before: null,
				after: { size: 3, permissions: "4711" },
				by: { pid: 77, command: "mv 'it'\\''s' b" },
			},
			{ path: "dir", status: "A", kind: "directory", after: { size: null, permissions: "0755" }, by: null },
		],
	});
});

test("the log: newest first, rewound turns only on demand, with betweens that changed something and gaps", async () => {
	new JournalBuilder(1)
		.span(1, 1, 1, 100, { turn: 1 })
		.span(2, 3, 0, 200)
		.span(3, 1, 2, 300, { turn: 2 })
		.span(4, 3, 0, 400)
		.entry(1, "mine", 0)
		.unmount(500)
		.seal()
		.writeTo(folder);
	new JournalBuilder(9, 8n).span(5, 3, 0, 900).seal().writeTo(folder);
	await ingestJournal(store, { engineGone: false });
	await store.putPostStates(4, [[entry("1", "mine"), state({ object: "9", mode: FILE, path: "mine" })]]);
	await store.markRewound([2], 7);
	const short = await listLog(store, { all: false, live: [] });
	expect(short.map((line) => line.turn)).toEqual([1]);
	const all = await listLog(store, { all: true, live: [] });
	expect(all.map(({ spanKind, turn: number, state: how, counts }) => [spanKind, number, how, counts.added])).toEqual([
		["gap", null, "ended", 0],
		["between", null, "ended", 1],
		["turn", 2, "rewound", 0],
		["turn", 1, "ended", 0],
	]);
	expect(await listLog(store, { all: true, n: 1, live: [] })).toHaveLength(1);
});
