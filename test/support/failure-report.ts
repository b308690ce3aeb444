/** Keeps what explains a failure: the product's logs, its journal in words, and the test's commands. */
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { runCommand } from "./commands.js";
import { storesOf } from "./leftovers.js";
import type { TempProject } from "./temp-project.js";

/** Returns the folder with the report. */
export async function reportFailure(project: TempProject, test: string, troubles: string[]): Promise<string> {
	const name = test.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 80);
	const dir = join(
		process.env.TURNFS_TEST_REPORTS ?? join(tmpdir(), "turnfs-failures"),
		`${name}.${process.pid}.${Date.now()}`,
	);
	mkdirSync(dir, { recursive: true });
	writeFileSync(join(dir, "troubles.txt"), `${troubles.join("\n")}\n`);
	writeFileSync(join(dir, "commands.txt"), project.transcript.join("\n"));
	const run = join(project.top, "run", "turnfs");
	if (existsSync(run)) {
		for (const file of readdirSync(run)) {
			if (file.endsWith(".json") || file.endsWith(".log")) cpSync(join(run, file), join(dir, file));
		}
	}
	for (const store of storesOf(project)) {
		for (const file of readdirSync(store)) {
			if (file.endsWith(".log") || file.endsWith(".json"))
				cpSync(join(store, file), join(dir, `${basename(store)}.${file}`));
		}
		const journal = join(store, "journal");
		for (const file of existsSync(journal) ? readdirSync(journal).sort() : []) {
			const dump = await runCommand([project.product.engine, "dump", join(journal, file)], { expectStatus: null });
			writeFileSync(join(dir, `journal.${file}.txt`), dump.stdout + dump.stderr);
		}
	}
	return dir;
}
