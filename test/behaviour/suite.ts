/**
 * The behaviour suite: the same cases (cases_*.py) on a plain folder and on a mount over the same filesystem, as the same user.
 * The plain folder is the oracle: what it answers, the mount must answer.
 */
import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BackingKind } from "../support/backing.js";
import { TempProject } from "../support/temp-project.js";
import { ordinaryUser, root } from "../support/users.js";
import { byNature } from "./by-nature.js";

interface CaseInfo {
	name: string;
	needs: "root" | "user" | "anybody";
	says: string;
}

const runner = fileURLToPath(new URL("run_cases.py", import.meta.url));
const allCases = JSON.parse(
	execFileSync("/usr/bin/python3", ["-IB", runner, "--list"], { encoding: "utf8" }),
) as CaseInfo[];

/** For work on single cases: TURNFS_BEHAVIOUR_CASES=name,name. */
const only = process.env.TURNFS_BEHAVIOUR_CASES?.split(",") ?? [];

/** Sanitizers make everything slower; the limit only has to catch what hangs. */
const limitSeconds = 600;

export interface SuiteOptions {
	backing: BackingKind;
	as: "root" | "user";
	/** Results that this filesystem can't give equally, with the reason. */
	unlike?: Record<string, string>;
}

export function behaviourSuite({ backing, as, unlike = {} }: SuiteOptions): void {
	const cases = allCases.filter(
		(c) => (c.needs === "anybody" || c.needs === as) && (only.length === 0 || only.includes(c.name)),
	);
	describe(`as ${as} on ${backing}, the mount answers as the folder does`, () => {
		let project: TempProject;
		let plain: Map<string, unknown>;
		let mount: Map<string, unknown>;
		let ending: Promise<void>;

		beforeAll(async () => {
			const user = as === "root" ? root : ordinaryUser();
			project = await TempProject.create({ backing, user, lifetime: "caller", watchdogSeconds: limitSeconds });
			const plainDir = join(project.top, "plain");
			mkdirSync(plainDir);
			chownSync(plainDir, user.uid, user.gid);
			plain = await runCases(project, plainDir);
			await project.mount();
			await project.beginTurn();
			mount = await runCases(project, project.dir);
			ending = project.endTurn().then(() => project.umount());
			// Looked at by a test of its own.
			await ending.catch(() => {});
		}, limitSeconds * 1_000);

		afterAll(async () => project?.cleanUp(), 60_000);

		test("the runner gets through all cases", () => {
			expect(plain.get("")).toEqual([0, ""]);
			expect(mount.get("")).toEqual([0, ""]);
		});

		test("the turn ends after it all, and the folder unmounts", () => ending);

		for (const { name, says } of cases) {
			const special = byNature[name];
			if (unlike[name]) continue;
			test(special ? `${name}: ${special.reason}` : `${name}: ${says}`, () => {
				// A case that raises or hangs on the plain folder proves nothing.
				expect(JSON.stringify(plain.get(name) ?? "not run")).not.toMatch(/^("no answer|"died|"not run|\{"raised)/);
				const expected = special ? special.mount : plain.get(name);
				const unlike = differences(expected, mount.get(name));
				if (unlike.length > 0) throw new Error(unlike.slice(0, 20).join("\n"));
				// Other filesystems may refuse by themselves what the mount has to refuse.
				if (special && backing === "ext4") expect(plain.get(name), "no longer special").not.toEqual(special.mount);
			});
		}
	});
}

/** Where two results differ, a line each: "place: the folder says …, the mount says …". */
function differences(folder: unknown, mount: unknown, place = ""): string[] {
	if (isDeepStrictEqual(folder, mount)) return [];
	if (isContainer(folder) && isContainer(mount) && Array.isArray(folder) === Array.isArray(mount)) {
		const keys = new Set([...Object.keys(folder), ...Object.keys(mount)]);
		return [...keys].flatMap((key) => differences(folder[key], mount[key], place ? `${place}.${key}` : key));
	}
	return [`${place}: the folder says ${JSON.stringify(folder)}, the mount says ${JSON.stringify(mount)}`];
}

function isContainer(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}

async function runCases(project: TempProject, dir: string): Promise<Map<string, unknown>> {
	const done = await project.run(["/usr/bin/python3", "-IB", runner, dir, ...only], {
		cwd: dir,
		timeoutMs: limitSeconds * 1_000,
		// When a mount dies the cases up to there still tell something; the others are "not run".
		expectStatus: null,
	});
	const results = new Map<string, unknown>([["", [done.status, done.stderr]]]);
	for (const line of done.stdout.split("\n").filter((l) => l.startsWith("{"))) {
		const { case: name, result } = JSON.parse(line) as { case: string; result: unknown };
		results.set(name, result);
	}
	return results;
}
