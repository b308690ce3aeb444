import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runChild } from "../../src/cli/child.js";

let folder: string;

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "turnfs-child-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = (...command: string[]) => runChild(command, folder, process.env);

describe("the program under run", () => {
	it("hands its exit status on", async () => {
		expect(await run("sh", "-c", "exit 7")).toEqual({ status: 7, failure: null });
		expect((await run("true")).status).toBe(0);
	});

	it("ended by a signal gives 128+n", async () => {
		expect((await run("sh", "-c", "kill -TERM $$")).status).toBe(143);
		expect((await run("sh", "-c", "kill -KILL $$")).status).toBe(137);
	});

	it("that can't be found or executed gives 127 and 126", async () => {
		expect(await run("turnfs-no-such-program")).toMatchObject({
			status: 127,
			failure: { code: "TURNFS_COMMAND_NOT_FOUND" },
		});
		writeFileSync(join(folder, "text"), "hello", { mode: 0o644 });
		expect((await run("./text")).status).toBe(126);
	});

	it("stands in the folder it was given, and PWD says so", async () => {
		writeFileSync(join(folder, "check"), '[ "$PWD" = "$(pwd -P)" ] && [ -f check ]', { mode: 0o755 });
		expect((await run("sh", "./check")).status).toBe(0);
	});

	it("gets the signals that are sent to us", async () => {
		const ended = run("sh", "-c", "trap 'exit 9' TERM; touch ready; while :; do sleep 0.05; done");
		await vi.waitFor(() => expect(existsSync(join(folder, "ready"))).toBe(true), 5000);
		process.kill(process.pid, "SIGTERM");
		expect((await ended).status).toBe(9);
	});
});
