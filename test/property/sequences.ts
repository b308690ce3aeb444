/**
 * Random sequences of file system operations, as data: the worker (worker.py) carries them out and picks by number among
 * what is there at that moment, so a sequence means the same whenever it is run again, and a shrunk one is still a sequence.
 */
import fc from "fast-check";

/** Name of an `op_…` function of worker.py, then its numbers. */
export type Op = [name: string, ...numbers: number[]];

export interface Sequence {
	/** What is there before the first turn. */
	start: Op[];
	/** The operations of each turn. */
	turns: Op[][];
	/** Picks the turn to go back to: modulo their number. */
	back: number;
	/** And the one for a second time, after redo. */
	again: number;
	/** A turn made after the second rewind, and rewound too. */
	after: Op[];
}

const pick = fc.nat({ max: 40 });
const slot = fc.nat({ max: 3 });
const name = fc.nat({ max: 6 });
const seed = fc.nat({ max: 1_000_000 });
const mode = fc.constantFrom(0o644, 0o600, 0o755, 0o444, 0o000, 0o4755, 0o2770, 0o1777);
const uid = fc.constantFrom(0, 1000, 12_345);
/** Mostly small; now and then beyond a page, and beyond the size up to which a file is kept whole (1 MiB). */
const length = fc.oneof(
	{ weight: 16, arbitrary: fc.integer({ min: 0, max: 3000 }) },
	{ weight: 7, arbitrary: fc.integer({ min: 4096, max: 70_000 }) },
	{ weight: 1, arbitrary: fc.integer({ min: 1_000_000, max: 1_200_000 }) },
);
const offset = fc.oneof(
	{ weight: 12, arbitrary: fc.integer({ min: 0, max: 6000 }) },
	{ weight: 7, arbitrary: fc.integer({ min: 0, max: 140_000 }) },
	{ weight: 1, arbitrary: fc.integer({ min: 1_000_000, max: 5_000_000 }) },
);

function op(kind: string, ...numbers: fc.Arbitrary<number>[]): fc.Arbitrary<Op> {
	return fc.tuple(...numbers).map((values) => [kind, ...values] as Op);
}

const weighted: [number, fc.Arbitrary<Op>][] = [
	[6, op("create", pick, name, length, seed)],
	[2, op("excl", pick, name, mode)],
	[6, op("write", pick, offset, length, seed)],
	[3, op("append", pick, length, seed)],
	[4, op("truncate", pick, offset)],
	[4, op("fallocate", pick, fc.nat({ max: 2 }), offset, length)],
	[2, op("copy_range", pick, pick, offset, offset, length)],
	[6, op("mkdir", pick, name, fc.constantFrom(0o755, 0o700, 0o1777, 0o2775))],
	[2, op("rmdir", pick)],
	[2, op("remove_tree", pick)],
	[6, op("unlink", pick)],
	[6, op("rename", pick, pick, name)],
	[3, op("rename_onto", pick, pick)],
	[2, op("noreplace", pick, pick, name)],
	[4, op("exchange", pick, pick)],
	[2, op("cycle", pick, pick, pick)],
	[4, op("link", pick, pick, name)],
	[3, op("symlink", pick, name, fc.nat({ max: 4 }))],
	[2, op("mknod", pick, name, fc.nat({ max: 2 }))],
	[3, op("chmod", pick, mode)],
	[2, op("chown", pick, uid, uid)],
	[3, op("utimes", pick, fc.integer({ min: 0, max: 2_000_000_000 }), fc.nat({ max: 999_999_999 }))],
	[2, op("setxattr", pick, fc.nat({ max: 2 }), fc.nat({ max: 200 }), seed)],
	[1, op("removexattr", pick, fc.nat({ max: 2 }))],
	[1, op("acl", pick, uid, fc.nat({ max: 7 }), fc.nat({ max: 1 }))],
	[4, op("save", pick, length, seed, fc.nat({ max: 2 }))],
	[3, op("open", slot, pick)],
	[2, op("open_unlink", slot, pick)],
	[2, op("tmpfile", slot, pick, length, seed)],
	[2, op("link_slot", slot, pick, name)],
	[4, op("slot_write", slot, offset, length, seed)],
	[2, op("slot_truncate", slot, offset)],
	[1, op("slot_chmod", slot, mode)],
	[1, op("slot_fsync", slot)],
	[4, op("map", slot)],
	[4, op("store", slot, offset, length, seed)],
	[1, op("msync", slot)],
	[1, op("close", slot)],
	[2, op("read", pick)],
];
const anyOp = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));

/** Ops that make things: a sequence that starts with nothing has little to lose. */
const making = fc.oneof(
	{ weight: 4, arbitrary: op("create", pick, name, length, seed) },
	{ weight: 3, arbitrary: op("mkdir", pick, name, fc.constant(0o755)) },
	{ weight: 1, arbitrary: op("symlink", pick, name, fc.nat({ max: 4 })) },
	{ weight: 1, arbitrary: op("link", pick, pick, name) },
	{ weight: 1, arbitrary: op("mknod", pick, name, fc.nat({ max: 2 })) },
	{ weight: 1, arbitrary: op("setxattr", pick, fc.nat({ max: 2 }), fc.nat({ max: 200 }), seed) },
	{ weight: 2, arbitrary: op("open", slot, pick) },
	{ weight: 2, arbitrary: op("map", slot) },
);

export const anySequence: fc.Arbitrary<Sequence> = fc.record({
	start: fc.array(making, { minLength: 3, maxLength: 14 }),
	turns: fc.array(fc.array(anyOp, { maxLength: 10 }), { minLength: 1, maxLength: 4 }),
	back: fc.nat({ max: 11 }),
	again: fc.nat({ max: 11 }),
	after: fc.array(anyOp, { maxLength: 6 }),
});
