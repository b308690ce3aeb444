import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "../scenarios/story.js";

const MIB = 1024 ** 2;

describe("P6 Cost follows what is touched", () => {
	test("changing one row of a large database keeps kilobytes to a few MiB of it", async () => {
		const story = await Story.start({
			prepare: `
				sqlite3 big.db "CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB);
					WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<128) INSERT INTO t SELECT i, zeroblob(1048576) FROM n;
					CREATE TABLE r(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO r VALUES(1, 'before')"
				# The rest of it is never read: a hole stands for two gigabytes.
				truncate -s 2G disk.img
			`,
		});
		const before = await story.storeBytes();
		await story.turn(`
			sqlite3 big.db "UPDATE r SET v='after' WHERE id=1"
			printf row | dd of=disk.img bs=1M seek=1500 conv=notrunc status=none
		`);
		expect((await story.storeBytes()) - before).toBeLessThan(4 * MIB);
		const [turn] = await story.json("log");
		expect(turn.bytes).toBeGreaterThan(0);
		expect(turn.bytes).toBeLessThan(4 * MIB);
		await roundTrip(story, []);
	});

	test("mount, turn begin, mark and end take the same time in a tree of 20,000 files as in an empty one", async () => {
		const median = async (story: Story): Promise<number> => {
			const times: number[] = [];
			for (let round = 0; round < 5; round++) {
				const started = performance.now();
				await story.ok("turn", "begin");
				await story.ok("turn", "mark");
				await story.ok("turn", "end");
				times.push(performance.now() - started);
			}
			return times.sort((a, b) => a - b)[2] ?? 0;
		};
		const small = await Story.start({ prepare: "echo 1 > f" });
		const large = await Story.start({ prepare: "for d in $(seq 100); do mkdir $d; (cd $d; touch $(seq 200)); done" });
		const [few, many] = [await median(small), await median(large)];
		expect(many).toBeLessThan(few * 1.5 + 100);
	});

	test("removing and renaming large things keeps no copy of them", async () => {
		const story = await Story.start({
			prepare:
				"mkdir d; for i in 1 2 3 4; do head -c 20000000 /dev/urandom > d/$i; done; head -c 20000000 /dev/urandom > f; head -c 1000000 /dev/urandom > g",
		});
		await story.turn("mv d e; rm -rf e; mv g f");
		const packed = await story.packedBytes();
		expect(packed).toBeLessThan(MIB);
		await roundTrip(story, []);
		expect(await story.packedBytes()).toBeLessThan(2 * MIB);
	});
});
