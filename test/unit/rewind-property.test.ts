import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ModelProject, select } from "./rewind-model.js";

const paths = ["a", "b", "c", "d", "d/x", "d/y", "d/e", "d/e/z", "c/x", "c/d"];
const path = fc.constantFrom(...paths);

type Operation = (project: ModelProject) => void;

const operation: fc.Arbitrary<{ run: Operation }> = fc.oneof(
	op(
		"create",
		path,
		fc.constantFrom("", "hi", "0123456789abcdef", "01....67...."),
	)((project, at, bytes) => void project.create(at, bytes)),
	op("mkdir", path, fc.constant(0))((project, at) => void project.mkdir(at)),
	op("symlink", path, fc.constantFrom("t", "u"))((project, at, target) => void project.symlink(at, target)),
	op("unlink", path, fc.constant(0))((project, at) => project.unlink(at)),
	op("rmdir", path, fc.constant(0))((project, at) => project.rmdir(at)),
	op("rename", path, path)((project, from, to) => rename(project, from, to)),
	op(
		"exchange",
		path,
		path,
	)((project, from, to) => {
		if (!inside(from, to) && !inside(to, from)) {
			project.exchange(from, to);
		}
	}),
	op(
		"link",
		path,
		path,
	)((project, from, to) => {
		if (!project.has(to) && isFile(project, from)) {
			project.link(from, to);
		}
	}),
	op(
		"write",
		path,
		fc.integer({ min: 0, max: 14 }),
	)((project, at, offset) => {
		if (isFile(project, at)) {
			project.write(at, offset, "XY");
		}
	}),
	op(
		"truncate",
		path,
		fc.integer({ min: 0, max: 20 }),
	)((project, at, size) => {
		if (isFile(project, at)) {
			project.truncate(at, size);
		}
	}),
	op(
		"chmod",
		path,
		fc.constantFrom(0o700, 0o600, 0o000),
	)((project, at, mode) => {
		if (!isSymlink(project, at)) {
			project.chmod(at, mode);
		}
	}),
	op("touch", path, fc.constant(0))((project, at) => project.touch(at)),
	op("xattr", path, fc.constantFrom("1", null))((project, at, value) => project.setXattr(at, "user.k", value)),
);

function op<A, B>(name: string, a: fc.Arbitrary<A>, b: fc.Arbitrary<B>) {
	return (run: (project: ModelProject, a: A, b: B) => void) =>
		fc.tuple(a, b).map(([one, two]) => ({
			run: (project: ModelProject) => run(project, one, two),
			[fc.toStringMethod]: () => `${name} ${one} ${two}`,
		}));
}

function kindOf(project: ModelProject, at: string): number {
	return project.has(at) ? (project.inodes.get(project.at(at))?.mode ?? 0) & 0o170000 : 0;
}
const isFile = (project: ModelProject, at: string) => kindOf(project, at) === 0o100000;
const isSymlink = (project: ModelProject, at: string) => kindOf(project, at) === 0o120000;
const isDirectory = (project: ModelProject, at: string) => kindOf(project, at) === 0o040000;
const inside = (outer: string, inner: string) => inner === outer || inner.startsWith(`${outer}/`);

function rename(project: ModelProject, from: string, to: string): void {
	if (inside(from, to) || !project.has(from)) {
		return;
	}
	if (project.has(to)) {
		const same = project.at(from) === project.at(to);
		if (same || isDirectory(project, from) !== isDirectory(project, to)) {
			return;
		}
		if (isDirectory(project, to) && project.list(project.at(to)).length > 0) {
			return;
		}
	}
	project.rename(from, to);
}

/** Operations that the system would refuse change nothing. */
function runAll(project: ModelProject, operations: readonly { run: Operation }[]): void {
	for (const { run } of operations) {
		try {
			run(project);
		} catch (error) {
			if (!/^(no |.* exists|.* is a directory|.* can't be removed)/.test((error as Error).message)) {
				throw error;
			}
		}
	}
}

/** The same operations, but some by somebody else and some outside the mount. */
function runMixed(project: ModelProject, operations: readonly { run: Operation; by: number }[]): void {
	const own = project.lane;
	for (const { run, by } of operations) {
		project.lane = by === 1 ? 0 : own;
		if (by === 2) {
			project.outside((outside) => runAll(outside, [{ run }]));
		} else {
			runAll(project, [{ run }]);
		}
	}
	project.lane = own;
}

function mixedOperations(highestBy: number) {
	return fc.array(
		fc.tuple(operation, fc.integer({ min: 0, max: highestBy })).map(([{ run, ...text }, by]) => ({
			run,
			by,
			[fc.toStringMethod]: () => `${by}: ${(text as Record<symbol, () => string>)[fc.toStringMethod]?.()}`,
		})),
		{ maxLength: 12 },
	);
}

const someOperations = fc.array(operation, { maxLength: 14 });

describe("a rewind plan, executed", () => {
	const runs = { numRuns: 500, verbose: 1 as const };
	it("gives back the tree as any turn found it, and forward again, and back again", () => {
		fc.assert(
			fc.property(
				someOperations,
				fc.array(someOperations, { minLength: 1, maxLength: 3 }),
				fc.nat(),
				fc.boolean(),
				(before, turns, choice, copies) => {
					const project = new ModelProject();
					project.copyInsteadOfPreserve = copies;
					runAll(project, before);
					const begins: { seq: bigint; tree: Record<string, string> }[] = [];
					for (const [index, operations] of turns.entries()) {
						const seq = project.advance(index + 1);
						begins.push({ seq, tree: project.tree() });
						runAll(project, operations);
					}
					project.advance(0);
					const after = project.tree();
					const index = choice % turns.length;
					const begin = begins[index] as (typeof begins)[number];
					const lanes = turns.map((_, at) => at + 1).slice(index);

					const back = project.rewind(begin.seq, select(...lanes));
					expect(back.plan.conflicts).toEqual([]);
					expect(back.plan.skipped).toEqual([]);
					expect(project.tree()).toEqual(begin.tree);

					const forward = project.rewind(back.seq, select(back.lane));
					expect(forward.plan.conflicts).toEqual([]);
					expect(project.tree()).toEqual(after);

					const again = project.rewind(begin.seq, select(...lanes));
					expect(again.plan.conflicts).toEqual([]);
					expect(project.tree()).toEqual(begin.tree);

					const rest = project.plan(begin.seq, select(...lanes));
					expect(rest.steps).toEqual([]);

					const last = project.rewind(again.seq, select(again.lane));
					expect(last.plan.conflicts).toEqual([]);
					expect(project.tree()).toEqual(after);
				},
			),
			runs,
		);
	});

	it("with exact gives back the tree as the turn found it, whoever changed it through the mount since", () => {
		const turns = fc.array(mixedOperations(1), { minLength: 1, maxLength: 3 });
		fc.assert(
			fc.property(someOperations, turns, fc.boolean(), (before, spans, copies) => {
				const project = new ModelProject();
				project.copyInsteadOfPreserve = copies;
				runAll(project, before);
				const seq = project.advance(1);
				const begin = project.tree();
				for (const [index, operations] of spans.entries()) {
					project.advance(index % 2 === 0 ? 1 : 0);
					runMixed(project, operations);
				}
				project.advance(0);
				const after = project.tree();
				const back = project.rewind(seq, { ...select(1), everybody: true }, { overwrite: true });
				expect(project.tree()).toEqual(begin);
				project.rewind(back.seq, select(back.lane));
				expect(project.tree()).toEqual(after);
			}),
			{ numRuns: 500, verbose: 1 },
		);
	});

	it("over others' changes can be executed, is stable, and a redo gives the present back", () => {
		const turns = fc.array(mixedOperations(2), { minLength: 1, maxLength: 3 });
		fc.assert(
			fc.property(someOperations, turns, fc.boolean(), (before, spans, copies) => {
				const project = new ModelProject();
				project.copyInsteadOfPreserve = copies;
				runAll(project, before);
				const seq = project.advance(1);
				for (const [index, operations] of spans.entries()) {
					project.advance(index % 2 === 0 ? 1 : 0);
					runMixed(project, operations);
				}
				project.advance(0);
				const after = project.tree();
				const back = project.rewind(seq, select(1), { overwrite: true });
				project.rewind(back.seq, select(back.lane), { overwrite: true });
				expect(project.tree()).toEqual(after);
			}),
			{ numRuns: 500, verbose: 1 },
		);
	});
});
