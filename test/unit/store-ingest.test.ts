import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { put } from "../../src/store/index-db.js";
import { ingestJournal } from "../../src/store/ingest.js";
import type { DataRecord, IndexRecord } from "../../src/store/records.js";
import { HistoryStore } from "../../src/store/store.js";
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

async function allRecords(): Promise<IndexRecord[]> {
	const records: IndexRecord[] = [];
	for await (const record of store.records(0n)) records.push(record);
	return records;
}

function twoTurns(): JournalBuilder {
	return new JournalBuilder(1)
		.span(1, 3, 0, 100)
		.span(2, 1, 1, 200, { turn: 1, label: "first", owner: { pid: 9, token: "t" } })
		.process(1, 77, ["rm", "a"])
		.bind(2, false, 12, 1, "a")
		.entry(1, "a", 2, "", 1)
		.preserved(2, "preserved/0c/c.2.9")
		.span(3, 2, 1, 300, { turn: 1, mark: 1 })
		.entry(1, "b", 0)
		.bind(3, true, 13, 1, "b")
		.span(4, 3, 0, 400)
		.span(5, 1, 2, 500, { turn: 2 });
}

test("spans and turns come out as they were begun and ended", async () => {
	twoTurns().seal().writeTo(folder);
	await ingestJournal(store, { engineGone: false });
	expect(await store.turn(1)).toMatchObject({
		state: "ended",
		label: "first",
		beginNs: 200n,
		endNs: 400n,
		epochs: [2, 3],
		owner: { pid: 9, token: "t" },
	});
	expect(await store.openTurn()).toMatchObject({ turn: 2, state: "open", endNs: null, epochs: [5] });
	expect(await store.span(4)).toMatchObject({ kind: "between", turn: null, endNs: 500n });
	expect(await store.meta()).toMatchObject({ lastSeq: 13n, lastEpoch: 5, lastTurn: 2, nextObject: 4n });
	expect(readdirSync(join(folder, "journal"))).toEqual([]);
});

test("only sealed files are taken while an engine writes", async () => {
	const open = twoTurns();
	open.writeTo(folder, 4096);
	expect(await ingestJournal(store, { engineGone: false })).toMatchObject({ records: 0 });
	expect(readdirSync(join(folder, "journal"))).toEqual([open.fileName]);
});

test("a torn tail costs its records and nothing before; it is reported", async () => {
	twoTurns().writeTo(folder, 0, 3);
	const report = await ingestJournal(store, { engineGone: true });
	expect(report.torn).toHaveLength(1);
	expect(report.lastSeq).toBe(11n);
	expect((await store.turn(1))?.state).toBe("ended");
	expect(await store.turn(2)).toBeNull();
});

test("ingesting the same file again changes nothing", async () => {
	twoTurns().seal().writeTo(folder);
	await ingestJournal(store, { engineGone: false });
	const before = await allRecords();
	twoTurns().seal().writeTo(folder);
	await ingestJournal(store, { engineGone: true });
	expect(await allRecords()).toEqual(before);
	expect((await store.turn(1))?.epochs).toEqual([2, 3]);
});

test("records that a power loss took from the middle are said to be lost", async () => {
	twoTurns().writeTo(folder, 0, 1);
	new JournalBuilder(20).span(6, 3, 0, 600).seal().writeTo(folder);
	await ingestJournal(store, { engineGone: true });
	const lost = (await allRecords()).find((record) => record.type === "skipped");
	expect(lost).toMatchObject({ seq: 12n, reason: "8 records of the journal are lost" });
});

describe("one inode is one object", () => {
	test("whatever id a later mount gives to it", async () => {
		twoTurns().seal().writeTo(folder);
		new JournalBuilder(14, 8n)
			.span(6, 3, 0, 600)
			.bind(40, false, 13, 1, "b")
			.entry(1, "b", 40)
			.moved(40, 1, "c")
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect((await allRecords()).filter((record) => record.seq > 14n)).toMatchObject([
			{ type: "entry", object: "3" },
			{ type: "moved", object: "3", name: "c" },
		]);
		expect(await store.pathOf("3")).toBe("c");
		expect(await store.lookupIdentity({ dev: 0n, ino: 13n, birthNs: 1n })).toBe("3");
	});

	test("but a number that was used again is another object", async () => {
		twoTurns().seal().writeTo(folder);
		new JournalBuilder(14, 8n).span(6, 3, 0, 600).bind(40, true, 13, 1, "n", 0o100644, 2).seal().writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await store.lookupIdentity({ dev: 0n, ino: 13n, birthNs: 2n })).toBe("40");
		expect(await store.lookupIdentity({ dev: 0n, ino: 13n, birthNs: 1n })).toBe("3");
	});

	test("a claimed newborn is the old object come back", async () => {
		twoTurns().seal().writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		await store.claim({ dev: 0n, ino: 50n, birthNs: 9n }, "2");
		new JournalBuilder(14, 8n)
			.span(6, 4, 0x80000006, 600)
			.bind(41, true, 50, 1, "a", 0o100644, 9)
			.attrs(41, 0, "a")
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await store.binding("2")).toMatchObject({ ino: 50n, name: "a", parent: "1", place: null });
		expect((await allRecords()).at(-1)).toMatchObject({ type: "attrs", object: "2" });
	});
});

describe("where an object is", () => {
	test("follows renames of its folder, removal, and its way back", async () => {
		new JournalBuilder(1)
			.span(1, 1, 1, 100, { turn: 1 })
			.bind(2, false, 20, 1, "lib", 0o40755)
			.bind(3, false, 21, 2, "x")
			.entry(1, "lib", 2)
			.entry(1, "core", 0)
			.moved(2, 1, "core")
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await store.pathOf("3")).toBe("core/x");
		new JournalBuilder(9).entry(2, "x", 3).preserved(3, "preserved/15/p").seal().writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await store.pathOf("3")).toBeNull();
		expect(await store.binding("3")).toMatchObject({ place: "preserved/15/p" });
		new JournalBuilder(13).moved(3, 1, "y").dropped(3, "preserved/15/p").seal().writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await store.pathOf("3")).toBe("y");
		expect(await store.binding("3")).toMatchObject({ place: null });
	});

	test("every removed name of a hard-linked file keeps its place", async () => {
		new JournalBuilder(1)
			.span(1, 1, 1, 100, { turn: 1 })
			.bind(2, false, 20, 1, "a")
			.preserved(2, "preserved/14/a")
			.preserved(2, "preserved/14/b")
			.preserved(2, "preserved/14/c")
			.dropped(2, "preserved/14/a")
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await store.binding("2")).toMatchObject({ place: "preserved/14/b", morePlaces: ["preserved/14/c"] });
	});
});

describe("content", () => {
	const extent = (fileOffset: number, xxh64 = 5n) => ({
		offset: 0,
		length: 4,
		kind: 1 as const,
		file: 1,
		fileOffset,
		xxh64,
	});

	function writePack(text: string): void {
		writeFileSync(join(folder, "packs", "00000001.pack"), Buffer.concat([Buffer.alloc(16), Buffer.from(text)]));
	}

	async function offsets(): Promise<bigint[]> {
		const data = (await allRecords()).filter((record): record is DataRecord => record.type === "data");
		return data.map((record) => record.extents[0]?.fileOffset ?? -1n);
	}

	test("that is the same is kept once", async () => {
		writePack("samesame");
		new JournalBuilder(1)
			.span(1, 1, 1, 1)
			.data(2, 4, [extent(16)])
			.data(3, 4, [extent(20)])
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await offsets()).toEqual([16n, 16n]);
		new JournalBuilder(6)
			.data(4, 4, [extent(20)])
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await offsets()).toEqual([16n, 16n, 16n]);
	});

	test("with equal address but other bytes is another content", async () => {
		writePack("onesothertwos");
		new JournalBuilder(1)
			.span(1, 1, 1, 1)
			.data(2, 4, [extent(16)])
			.data(3, 4, [extent(20)])
			.data(4, 4, [extent(20)])
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await offsets()).toEqual([16n, 20n, 20n]);
		expect(await store.blobAddresses()).toEqual(["blob/0000000000000005-4", "blob/0000000000000005-4-1"]);
	});

	test("that can't be read any more is equal to nothing", async () => {
		writePack("shor");
		new JournalBuilder(1)
			.span(1, 1, 1, 1)
			.data(2, 4, [extent(16)])
			.data(3, 4, [extent(18)])
			.seal()
			.writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		expect(await offsets()).toEqual([16n, 18n]);
	});
});

test("a turn's left-over process is found by its turn", async () => {
	const builder = twoTurns();
	builder.lane = 1;
	builder.entry(1, "late", 0).seal().writeTo(folder);
	await ingestJournal(store, { engineGone: false });
	expect(await store.lateRecords(1)).toMatchObject([{ type: "entry", name: "late", epoch: 5, lane: 1 }]);
	expect(await store.lateRecords(2)).toEqual([]);
});

describe("damage gives an error that names it", () => {
	test("of a value in the index", async () => {
		twoTurns().seal().writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		// LevelDB itself gives back whatever it was given.
		const raw = (key: string, value: string) => store.db.write([{ type: "put", key, value }], false);
		const { value } = put("turn/00000001", { turn: 1 }) as { value: string };
		await raw("turn/00000001", value);
		await expect(store.turn(1)).rejects.toThrow(/turn\/00000001: \w+ is not what it must be/);
		await raw("turn/00000001", value.replace("1}", "2}"));
		await expect(store.turn(1)).rejects.toThrow(/turn\/00000001: its checksum is wrong/);
		await raw("turn/00000002", value);
		await expect(store.turn(2)).rejects.toMatchObject({ code: "TURNFS_STORE_DAMAGED" });
		await raw("turn/00000002", "");
		await expect(store.turn(2)).rejects.toMatchObject({ code: "TURNFS_STORE_DAMAGED" });
	});

	test("of the index's files: nothing is made new, nothing deleted", async () => {
		twoTurns().seal().writeTo(folder);
		await ingestJournal(store, { engineGone: false });
		await store.close();
		rmSync(join(folder, "index", "CURRENT"));
		const names = readdirSync(join(folder, "index"));
		await expect(HistoryStore.open(folder)).rejects.toMatchObject({
			code: "TURNFS_STORE_DAMAGED",
			data: { file: join(folder, "index", "CURRENT") },
		});
		writeFileSync(join(folder, "index", "CURRENT"), "nonsense");
		await expect(HistoryStore.open(folder)).rejects.toMatchObject({ code: "TURNFS_STORE_DAMAGED" });
		for (const name of names) expect(readdirSync(join(folder, "index"))).toContain(name);
		rmSync(join(folder, "index"), { recursive: true });
		writeFileSync(join(folder, "packs", "00000001.pack"), "kept");
		await expect(HistoryStore.open(folder)).rejects.toThrow(/it is empty, but packs\/ is not/);
		folder = makeStoreFolders();
		store = await HistoryStore.open(folder);
	});

	test("of a second opener", async () => {
		await expect(HistoryStore.open(folder)).rejects.toMatchObject({ code: "TURNFS_STORE_LOCKED" });
	});

	test("of a valid frame that makes no sense: the file stays", async () => {
		const builder = twoTurns();
		builder.entry(1, "..", 0).seal().writeTo(folder);
		await expect(ingestJournal(store, { engineGone: true })).rejects.toMatchObject({ code: "TURNFS_STORE_DAMAGED" });
		expect(readdirSync(join(folder, "journal"))).toEqual([builder.fileName]);
	});
});

test("10,000 records are ingested well under a second", async () => {
	const builder = new JournalBuilder(1).span(1, 1, 1, 100, { turn: 1 });
	for (let n = 0; n < 3333; n++) {
		const object = 10 + n;
		builder
			.bind(object, false, 1000 + n, 1, `file-${n}`)
			.entry(1, `file-${n}`, object)
			.preserved(object, `preserved/00/${n}`);
	}
	builder.seal().writeTo(folder);
	const begin = process.cpuUsage();
	await ingestJournal(store, { engineGone: false });
	const { user, system } = process.cpuUsage(begin);
	const cpuMs = (user + system) / 1000;
	console.log(`ingest of 10,000 records: ${cpuMs.toFixed(0)} ms of processor time`);
	expect((await store.meta()).lastSeq).toBe(10_002n);
	// Processor time, because tests share the machine; alone it takes about a third of this.
	expect(cpuMs).toBeLessThan(1500);
});
