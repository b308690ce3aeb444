import { describe, expect, test } from "vitest";
import { crc32c } from "../../src/store/crc32c.js";
import { parseJournal } from "../../src/store/journal-reader.js";
import { JournalBuilder } from "./store-journal-builder.js";

test("the checksum is CRC-32C", () => {
	expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
	// RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and 0 … 31.
	expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
	expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43);
	expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => i)))).toBe(0x46dd794e);
});

function sample(): JournalBuilder {
	return new JournalBuilder(41)
		.span(1, 1, 3, 100, { turn: 3 })
		.process(1, 77, ["sh", "-c", "echo hi"])
		.bind(5, false, 12, 1, "caf\xe9")
		.entry(1, "caf\xe9", 5, "", 1)
		.attrs(5, 4, "caf\xe9")
		.data(5, 4, [{ offset: 0, length: 4, kind: 1, file: 2, fileOffset: 16, xxh64: 0xabcn }]);
}

describe("a journal file", () => {
	test("gives its records back, names as bytes", () => {
		const file = parseJournal(sample().seal().bytes, 41n);
		expect(file).toMatchObject({ sealed: true, droppedBytes: 0, reason: null, malformed: false });
		expect(file.records.map((record) => record.type)).toEqual([
			"header",
			"span",
			"process",
			"bind",
			"entry",
			"attrs",
			"data",
			"seal",
		]);
		expect(file.records[2]).toMatchObject({ seq: 43n, pid: 77, command: ["sh", "-c", "echo hi"] });
		expect(file.records[4]).toMatchObject({ dir: "1", name: "caf\xe9", object: "5", lane: 3, epoch: 1, proc: 1 });
		expect(file.records[5]).toMatchObject({ size: 4n, mtimeNs: 10n, xattrs: { "user.x": "value" } });
		expect(file.records[6]).toMatchObject({
			whole: true,
			extents: [{ kind: "pack", file: 2n, fileOffset: 16n, xxh64: "0000000000000abc" }],
		});
	});

	test("ends at the zeros of its preallocation", () => {
		const file = parseJournal(Buffer.concat([sample().bytes, Buffer.alloc(5000)]), 41n);
		expect(file).toMatchObject({ sealed: false, droppedBytes: 0, reason: null });
		expect(file.records).toHaveLength(7);
	});

	test("cut off at any byte keeps every record before the cut and says what was dropped", () => {
		const whole = sample();
		const bytes = whole.bytes;
		const ends = whole.frames.map((_, i) => whole.frames.slice(0, i + 1).reduce((sum, f) => sum + f.length, 0));
		for (let cut = 0; cut < bytes.length; cut++) {
			const file = parseJournal(bytes.subarray(0, cut), 41n);
			const complete = ends.filter((end) => end <= cut);
			expect(file.records).toHaveLength(complete.length);
			expect(file.malformed).toBe(false);
			// Trailing zero bytes can't be told from preallocation.
			expect(file.droppedBytes).toBeLessThanOrEqual(cut - (complete.at(-1) ?? 0));
		}
	});

	test("with a flipped bit ends before the record that has it", () => {
		const whole = sample();
		const start = whole.frames.slice(0, 4).reduce((sum, f) => sum + f.length, 0);
		for (let at = start; at < start + (whole.frames[4]?.length ?? 0); at++) {
			const bytes = Buffer.from(whole.bytes);
			bytes[at] = (bytes[at] as number) ^ 0x10;
			const file = parseJournal(bytes, 41n);
			expect(file.records).toHaveLength(4);
			expect(file.droppedBytes).toBeGreaterThan(0);
		}
	});

	test("does not go on with a record of another place in the journal", () => {
		const old = new JournalBuilder(1).span(1, 3, 0, 5).bytes;
		const file = parseJournal(Buffer.concat([sample().bytes, old]), 41n);
		expect(file.records).toHaveLength(7);
		expect(file.reason).toBe("a record is out of order");
	});

	test("a valid frame of an unknown type is damage, no torn tail", () => {
		const builder = sample();
		builder.record(99, { parts: [Buffer.from("x")] } as never);
		expect(parseJournal(builder.bytes, 41n)).toMatchObject({ malformed: true, reason: "record type 99 is unknown" });
	});

	test("a name that would lead out of its folder is damage", () => {
		for (const name of ["..", ".", "", "a/b", "a\0b"]) {
			expect(parseJournal(sample().entry(1, name, 0).bytes, 41n).malformed).toBe(true);
		}
	});
});
