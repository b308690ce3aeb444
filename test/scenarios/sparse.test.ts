import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

const GIB = 1024 ** 3;

describe("sparse files", () => {
	test("a 10 GiB hole costs neither the store nor a rewind 10 GiB", async () => {
		const story = await Story.start({
			prepare: `
				truncate -s 10G disk.img
				printf head | dd of=disk.img conv=notrunc status=none
				printf middle | dd of=disk.img bs=1M seek=5000 conv=notrunc status=none
				cp --sparse=always disk.img other.img
			`,
		});
		const before = await story.tree();
		const storeBefore = await story.storeBytes();
		await story.turn(`
			printf HEAD | dd of=disk.img conv=notrunc status=none
			printf tail | dd of=disk.img bs=1M seek=10239 conv=notrunc status=none
			rm other.img
			truncate -s 0 disk.img
			echo small > disk.img
		`);
		const after = await story.tree();
		expect((await story.storeBytes()) - storeBefore).toBeLessThan(8 * 1024 ** 2);
		const started = Date.now();
		await story.rewind(1);
		expect(Date.now() - started).toBeLessThan(15_000);
		await story.expectTree(before);
		const { size, allocated } = await story.sizes("disk.img");
		expect(size).toBe(10 * GIB);
		expect(allocated).toBeLessThan(1024 ** 2);
		expect((await story.storeBytes()) - storeBefore).toBeLessThan(8 * 1024 ** 2);
		await roundTrip(story, [], { before, after, rewound: true });
	});

	test("holes that were filled are holes again, and punched ones are filled with what was there", async () => {
		const story = await Story.start({
			prepare: `
				truncate -s 3M holes; printf x | dd of=holes bs=1 seek=1000000 conv=notrunc status=none
				head -c 3000000 /dev/urandom > solid
				head -c 200000 /dev/urandom > small
			`,
		});
		await roundTrip(story, [
			`head -c 3000000 /dev/zero | tr '\\0' z | dd of=holes conv=notrunc status=none
			 fallocate -p -o 4096 -l 65536 small; fallocate -p -o 1048576 -l 1048576 solid
			`,
			"fallocate -d holes; fallocate -p -o 0 -l 3000000 solid; truncate -s 1 small; truncate -s 5M small",
		]);
	});

	test("files cut and grown in every direction have their bytes and their ends again", async () => {
		const story = await Story.start({
			prepare: `
				for n in 0 1 4095 4096 4097 65536 1048575 1048577 2500000; do head -c $n /dev/urandom > f$n; done
			`,
		});
		await roundTrip(story, [
			"for f in f*; do truncate -s 100 $f; done",
			"for f in f*; do truncate -s 3000000 $f; printf end >> $f; done",
			"for f in f*; do : > $f; done",
			"for f in f*; do truncate -s 70000 $f; truncate -s 10 $f; truncate -s 80000 $f; done",
		]);
	});
});
