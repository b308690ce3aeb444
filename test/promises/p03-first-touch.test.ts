import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "../scenarios/story.js";

describe("P3 First touch in a span wins, per entry, per object's attributes, per object's bytes (or chunk)", () => {
	test("a file written a hundred times in a turn has the bytes from before the first write again", async () => {
		const story = await Story.start({ prepare: "echo first > f; head -c 3000000 /dev/urandom > large" });
		await roundTrip(story, [
			`for i in $(seq 100); do echo $i > f; chmod 6$((i % 8))0 f; touch f; done
			 for i in $(seq 40); do printf $i | dd of=large bs=1 seek=$((i % 5 * 600000)) conv=notrunc status=none; done`,
		]);
	});

	test("a name that meant five things in a turn means the first again", async () => {
		const story = await Story.start({ prepare: "echo one > name; mkdir other; echo o > other/o" });
		await roundTrip(story, [
			"mv name away; mkdir name; rmdir name; ln -s x name; rm name; mv other name; mv name other; echo two > name; mv away other/o; mkfifo away",
		]);
	});

	test("attributes touched first, bytes later, and the other way round, are both the first ones", async () => {
		const story = await Story.start({ prepare: "echo a > a; echo b > b; chmod 640 a b; touch -d '2010-10-10' a b" });
		await roundTrip(story, [
			"chmod 600 a; echo A > a; echo B > b; chmod 666 b; touch a b",
			"touch a; echo more >> a; truncate -s 0 b",
		]);
	});

	test("each mark is a span of its own, and the turn still goes back to its beginning", async () => {
		const story = await Story.start({ prepare: "echo 0 > f; head -c 2000000 /dev/zero > large" });
		await story.beginTurn();
		for (const mark of [1, 2, 3]) {
			await story.sh(
				`echo ${mark} > f; echo ${mark} > new${mark}; rm -f new${mark - 1}; printf ${mark} | dd of=large bs=1 seek=${mark}00000 conv=notrunc status=none`,
			);
			const made = await story.json("turn", "mark");
			expect(made).toMatchObject({ turn: 1 });
		}
		await story.sh("echo end > f");
		await story.endTurn();
		await roundTrip(story, []);
	});
});
