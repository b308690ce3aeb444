/**
 * Random sequences of file system operations in several turns: back to a random one, forward again, back to another. The truth
 * is the tree itself, looked at behind the mount the moment a turn has begun.
 *
 * TURNFS_PROPERTY_RUNS sets how many sequences (300), TURNFS_PROPERTY_SEED the seed (random). A failure prints both the seed
 * and the shrunken sequence, and adds it to seeds.json, whose cases run first from then on.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { anySequence, type Sequence } from "./sequences.js";
import { Teller } from "./teller.js";

interface FailedCase {
	/** What was wrong, for people. */
	why: string;
	found: string;
	seed: number;
	sequence: Sequence;
}

const casesPath = fileURLToPath(new URL("./seeds.json", import.meta.url));
const cases = JSON.parse(readFileSync(casesPath, "utf8")) as FailedCase[];
const runs = Number(process.env.TURNFS_PROPERTY_RUNS ?? 300);
const seed = Number(process.env.TURNFS_PROPERTY_SEED ?? Date.now() & 0x7fffffff);
/** A failure is made smaller for so long, then told as it is. */
const SHRINK_MS = 60_000;

const teller = new Teller();
afterAll(() => teller.end(), 60_000);

describe("after `rewind N` the tree equals the tree at the beginning of turn N, after `redo` the one before the rewind", () => {
	test.each(cases.map((one) => [`${one.why} (seed ${one.seed})`, one] as const))(
		"still holds where it once failed: %s",
		(_, one) => teller.tell(one.sequence),
	);

	test(`holds for ${runs} random sequences (seed ${seed})`, async () => {
		let giveUpAt = Number.POSITIVE_INFINITY;
		const property = fc.asyncProperty(anySequence, async (sequence) => {
			if (Date.now() > giveUpAt) return;
			try {
				await teller.tell(sequence);
			} catch (error) {
				giveUpAt = Math.min(giveUpAt, Date.now() + SHRINK_MS);
				throw error;
			}
		});
		const details = await fc.check(property, { numRuns: runs, seed });
		if (!details.failed) {
			expect(details.numRuns).toBe(runs);
			return;
		}
		const [sequence] = details.counterexample ?? [];
		const message =
			details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
		const found: FailedCase = {
			why:
				message
					.split("\n")
					.find((line) => /"/.test(line))
					?.trim() ?? "see the sequence",
			found: new Date().toISOString().slice(0, 10),
			seed,
			sequence: sequence as Sequence,
		};
		// A run in CI leaves nothing behind: there the printed case is copied in by hand.
		if (!process.env.CI) writeFileSync(casesPath, `${JSON.stringify([...cases, found], null, "\t")}\n`);
		throw new Error(
			`seed ${seed}, path ${details.counterexamplePath}\n${message}\nadd to seeds.json: ${JSON.stringify(found)}`,
		);
	}, 900_000);
});
