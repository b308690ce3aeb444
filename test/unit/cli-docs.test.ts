import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { errorCodes } from "../../src/errors.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

describe("docs/cli.md", () => {
	const text = readFileSync(join(root, "docs", "cli.md"), "utf8");

	it("lists every error code, and none that doesn't exist", () => {
		const listed = [...text.matchAll(/^\| `(TURNFS_[A-Z_]+)` \| .* \| \d+ \|$/gm)].map((match) => match[1]);
		expect(listed.sort()).toEqual([...errorCodes].sort());
	});

	it("lists every verb", () => {
		for (const file of readdirSync(join(root, "src", "cli", "verbs"))) {
			const verb = file.replace(/\.ts$/, "").replace("turn-", "turn ");
			expect(text).toMatch(verb === "overview" ? /^\| \(none\) \|/m : new RegExp(`^\\| \`${verb}\\b`, "m"));
		}
	});
});
