import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { quoteArgument } from "../../src/cli/render/names.js";
import { TurnfsError } from "../../src/errors.js";
import { FakeDaemon } from "./fixtures/fake-daemon.js";

const program = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "dist", "cli", "main.js");

let daemon: FakeDaemon;

beforeEach(() => {
	daemon = new FakeDaemon();
});
afterEach(() => daemon.stop());

interface Outcome {
	status: number | null;
	stdout: string;
	stderr: string;
}

function start(args: string[], env: NodeJS.ProcessEnv = {}) {
	const child = spawn(process.execPath, [program, ...args], {
		cwd: daemon.project,
		env: { ...daemon.env, ...env },
		stdio: ["ignore", "pipe", "pipe"],
	});
	const outcome: Promise<Outcome> = Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)]).then(
		([[status], stdout, stderr]) => ({ status: status as number | null, stdout, stderr }),
	);
	return { child, outcome };
}

const turnfs = (...args: string[]) => start(args).outcome;

/** Types into a terminal on which a turnfs command runs. */
async function onTerminal(typed: string, ...args: string[]): Promise<{ status: number | null; output: string }> {
	const line = `exec ${[process.execPath, program, ...args].map(quoteArgument).join(" ")}`;
	const child = spawn("script", ["-qefc", line, "/dev/null"], {
		cwd: daemon.project,
		env: { ...daemon.env, SHELL: "/bin/sh", TERM: "dumb" },
		stdio: ["pipe", "pipe", "inherit"],
	});
	let output = "";
	let answered = false;
	child.stdout.on("data", (chunk: Buffer) => {
		output += chunk;
		if (!answered && output.includes("[y/N]")) {
			answered = true;
			child.stdin.write(typed);
		}
	});
	const [status] = (await once(child, "exit")) as [number | null];
	return { status, output };
}

const plan = {
	turn: 3,
	turns: [3],
	restored: [{ path: "a.css" }],
	deleted: [{ path: "theme.css" }],
	conflicts: [] as { path: string; reason: string }[],
	skipped: [] as { path: string; reason: string }[],
	failed: [],
	anchor: null,
	redo: true,
	dryRun: false,
	applied: true,
};
const conflict = { path: "mine.txt", reason: "changed after turn 3" };

describe("rewind, undo, redo", () => {
	it.each(["rewind 3", "undo", "redo", "rewind 3 --json"])("%s without a terminal asks for --yes", async (line) => {
		const { status, stdout, stderr } = await turnfs(...line.split(" "));
		expect([status, stdout]).toEqual([2, ""]);
		expect(stderr).toContain("TURNFS_CONFIRM_NEEDED");
		expect(daemon.asked).toEqual([]);
	});

	it("print the daemon's answer as JSON and nothing else", async () => {
		daemon.answers["POST /rewind"] = plan;
		const { status, stdout, stderr } = await turnfs("rewind", "3", "--yes", "--json");
		expect([status, stderr]).toEqual([0, ""]);
		expect(JSON.parse(stdout)).toEqual(plan);
		expect(daemon.asked).toEqual([
			{ route: "POST /rewind", body: { turn: 3, dryRun: false, overwrite: false, exact: false } },
		]);
	});

	it("exit 3 for conflicts, with the paths", async () => {
		daemon.answers["POST /rewind"] = { ...plan, applied: false, conflicts: [conflict] };
		const { status, stdout, stderr } = await turnfs("undo", "--yes");
		expect(status).toBe(3);
		expect(stdout).toContain("mine.txt: changed after turn 3");
		expect(stderr).toContain("TURNFS_REWIND_CONFLICT");
	});

	it("exit 4 when something was skipped", async () => {
		daemon.answers["POST /redo"] = { ...plan, skipped: [{ path: "big", reason: "too large" }] };
		expect((await turnfs("redo", "--yes")).status).toBe(4);
	});

	it("show the plan on a terminal and do it after a yes", async () => {
		daemon.answers["POST /rewind"] = plan;
		const { status, output } = await onTerminal("y\n", "undo");
		expect(status).toBe(0);
		expect(output).toContain("theme.css");
		expect(daemon.asked.map(({ body }) => [body.turn, body.dryRun])).toEqual([
			["last", true],
			[3, false],
		]);
	});

	it.each([
		["no", "n\n"],
		["Enter", "\n"],
		["the end of input", "\u0004"],
		["Ctrl-C", "\u0003"],
	])("change nothing after %s", async (_name, typed) => {
		daemon.answers["POST /rewind"] = plan;
		const { status, output } = await onTerminal(typed, "rewind", "3");
		expect(status).toBe(1);
		expect(output).toContain("Nothing was changed.");
		expect(daemon.asked.length).toBe(1);
	});
});

describe("what the daemon says", () => {
	it("arrives as sentence, way out, code and exit status", async () => {
		const error = new TurnfsError("TURNFS_UNKNOWN_TURN", { turn: 9 });
		daemon.answers["GET /show/9"] = { error: error.toJSON() };
		const { status, stderr } = await turnfs("show", "9");
		expect(status).toBe(1);
		expect(stderr).toBe(`turnfs: ${error.message} ${error.hint} (TURNFS_UNKNOWN_TURN)\n`);
	});

	it("is listed for people", async () => {
		daemon.answers["GET /log?n=2&all=false"] = [];
		expect((await turnfs("log", "-n", "2")).stdout).toMatch(/^No turns; .*\n$/);
	});

	it("into a closed pipe ends quietly", async () => {
		const entry = {
			...{
				turn: 1,
				label: "x".repeat(200),
				anchor: null,
				session: null,
				spanKind: "turn",
				state: "ended",
				pinned: false,
			},
			...{ begin: "2026-03-01T12:00:00Z", end: null, bytes: 0, skipped: 0 },
			counts: { added: 0, modified: 0, deleted: 0, renamed: 0 },
		};
		daemon.answers["GET /log?all=false"] = Array.from({ length: 5000 }, () => entry);
		const { child, outcome } = start(["log"]);
		child.stdout.destroy();
		const { status, stderr } = await outcome.catch(async () => ({
			status: child.exitCode ?? (await once(child, "exit"))[0],
			stderr: "",
		}));
		expect([status, stderr]).toEqual([0, ""]);
	});
});

describe("turn begin", () => {
	it("prints the number alone and names who stands behind the mount", async () => {
		daemon.answers["POST /turn/begin"] = {
			...{ turn: 4, ended: null, mountpoint: daemon.project },
			behind: [{ pid: 7, comm: "bash" }],
		};
		const { status, stdout, stderr } = await turnfs(
			"turn",
			"begin",
			"--label",
			"x",
			"--anchor",
			'{"m":1}',
			"--owner",
			String(process.pid),
		);
		expect([status, stdout]).toEqual([0, "4\n"]);
		expect(stderr).toContain("bash (pid 7)");
		expect(daemon.asked[0]?.body).toEqual({
			...{ label: "x", anchor: { m: 1 }, session: null, ownerPid: process.pid, callerPid: process.pid },
		});
	});
});

describe("run", () => {
	const shown = {
		...{ turn: 5, label: "x", state: "ended", begin: "2026-03-01T12:00:00Z", end: "2026-03-01T12:00:01Z", behind: [] },
		skipped: [],
		changes: [
			{
				...{ path: "new.txt", status: "A", kind: "file", before: null, after: { size: 3, permissions: "0644" } },
				by: { pid: 9, command: "touch new.txt" },
			},
		],
	};

	beforeEach(() => {
		const pids = { keeper: 1, engine: 2, daemon: 3 };
		daemon.answers["POST /mount"] = { mountpoint: daemon.project, mountedNow: true, pids, behind: [] };
		daemon.answers["POST /turn/begin"] = { turn: 5, ended: null, mountpoint: daemon.project, behind: [] };
		daemon.answers["POST /turn/end"] = { turn: 5, endedNow: true };
		daemon.answers["GET /show/5"] = shown;
		daemon.answers["POST /umount"] = { mountpoint: daemon.project };
	});

	const wholeRun = ["POST /mount", "POST /turn/begin", "POST /hold", "POST /turn/end", "GET /show/5", "POST /umount"];

	it("mounts, begins, runs, ends, reports, unmounts, and hands the status on", async () => {
		const { status, stdout, stderr } = await turnfs("run", "--", "sh", "-c", 'echo "$PWD $TURNFS_TURN"; exit 3');
		expect([status, stdout]).toEqual([3, `${daemon.project} 5\n`]);
		expect(stderr).toContain("turn 5: 1 change (1 added)");
		expect(stderr).toContain("touch new.txt");
		expect(stderr).toContain("turnfs undo");
		expect(daemon.routes()).toEqual(wholeRun);
		const [, begin, hold] = daemon.asked;
		expect(begin?.body).toMatchObject({ ownerPid: hold?.body.pid, token: hold?.body.token });
		expect(hold?.body).toMatchObject({ turn: 5, keeper: 1, unmount: true });
		await daemon.holdEnded;
	});

	it("runs in the folder that -C names", async () => {
		expect((await turnfs("-C", "src", "run", "--", "pwd")).stdout).toBe(`${daemon.project}/src\n`);
	});

	it("says that the mount stays while others use it", async () => {
		daemon.answers["POST /umount"] = {
			error: new TurnfsError("TURNFS_MOUNT_BUSY", { mountpoint: "/p", holders: "vim (pid 8)" }).toJSON(),
		};
		const { status, stderr } = await turnfs("run", "--", "true");
		expect(status).toBe(0);
		expect(stderr).toContain("vim (pid 8). It stays mounted until they have gone.");
	});

	describe("from inside its own turn", () => {
		const inside = () => ({ TURNFS_RUN: "token", TURNFS_TURN: "5", TURNFS_PROJECT: daemon.project });

		beforeEach(() => {
			daemon.answers["GET /status"] = {
				...{ project: daemon.project, mounted: true, mountpoint: daemon.project, io: "cached", turn: 5, changes: null },
				...{ pids: { keeper: 1, engine: 2, daemon: 3 }, store: { path: "/s", bytes: 0, turns: 5 } },
				...{ holders: [], behind: [], problems: [] },
			};
		});

		it("joins it", async () => {
			const { status, stderr } = await start(["run", "--", "sh", "-c", "exit 4"], inside()).outcome;
			expect([status, stderr]).toEqual([4, ""]);
			expect(daemon.routes()).toEqual(["POST /mount", "GET /status"]);
		});

		it("umount is refused", async () => {
			const { status, stderr } = await start(["umount"], inside()).outcome;
			expect(status).toBe(1);
			expect(stderr).toContain("TURNFS_INSIDE_TURN");
			expect(daemon.routes()).toEqual(["GET /status"]);
		});
	});

	it("says what became of a mount that went while the program ran", async () => {
		daemon.answers["POST /umount"] = { error: new TurnfsError("TURNFS_NOT_MOUNTED", { project: "/p" }).toJSON() };
		const problem = { code: "TURNFS_ENGINE_GONE", message: "The engine has ended.", hint: "Mount again." };
		daemon.answers["GET /status"] = {
			...{ project: daemon.project, mounted: false, mountpoint: null, io: null, turn: null, changes: null },
			...{ pids: { keeper: null, engine: null, daemon: 3 }, store: { path: "/s", bytes: 0, turns: 5 } },
			...{ holders: [], behind: [], problems: [problem] },
		};
		const { status, stderr } = await turnfs("run", "--", "true");
		expect(status).toBe(0);
		expect(stderr).toContain("turnfs: The engine has ended. Mount again. (TURNFS_ENGINE_GONE)");
	});

	it("unmounts again when the turn can't begin, and exits 125", async () => {
		daemon.answers["POST /turn/begin"] = { error: new TurnfsError("TURNFS_TURN_OPEN", { turn: 4, pid: 1 }).toJSON() };
		const { status, stderr } = await turnfs("run", "--", "touch", "ran");
		expect(status).toBe(125);
		expect(stderr).toContain("TURNFS_TURN_OPEN");
		expect(daemon.routes()).toEqual(["POST /mount", "POST /turn/begin", "POST /umount"]);
		expect(existsSync(join(daemon.project, "ran"))).toBe(false);
	});

	it.each([
		["run"],
		["run", "--"],
		["run", "--private", "--", "true"],
		["run", "--max-preimage", "many", "--", "true"],
		["run", "--anchor", "{", "--", "true"],
	])("refuses wrong usage with 2: %s %s", async (...args) => {
		expect(await turnfs(...args)).toMatchObject({
			status: 2,
			stdout: "",
			stderr: expect.stringContaining("TURNFS_USAGE"),
		});
		expect(daemon.asked).toEqual([]);
	});

	it("gives 127 and 126 for programs that can't be started, and still ends the turn", async () => {
		expect((await turnfs("run", "--", "no-such-program")).status).toBe(127);
		expect(daemon.routes()).toEqual(wholeRun);
		writeFileSync(join(daemon.project, "text"), "", { mode: 0o644 });
		expect((await turnfs("run", "--", "./text")).status).toBe(126);
	});

	async function untilReady(): Promise<void> {
		await vi.waitFor(() => expect(existsSync(join(daemon.project, "ready"))).toBe(true), 10_000);
	}

	it("forwards SIGTERM and ends the turn", async () => {
		const { child, outcome } = start(["run", "--", "sh", "-c", "touch ready; exec sleep 30"]);
		await untilReady();
		child.kill("SIGTERM");
		expect((await outcome).status).toBe(143);
		expect(daemon.routes()).toEqual(wholeRun);
	});

	it("killed outright lets go of its hold, so that the daemon ends the turn", async () => {
		const { child } = start(["run", "--", "sh", "-c", "echo $$ > ready; exec sleep 30"]);
		await untilReady();
		child.kill("SIGKILL");
		await daemon.holdEnded;
		process.kill(Number(readFileSync(join(daemon.project, "ready"), "utf8")));
	});

	it("leaves Ctrl-C to the program and reports afterwards", async () => {
		const script = "trap 'echo caught; exit 6' INT; echo '[y/N]'; while :; do sleep 0.05; done";
		const { status, output } = await onTerminal("\u0003", "run", "--", "sh", "-c", script);
		expect(output).toContain("caught");
		expect(output).toContain("turn 5: 1 change");
		expect(status).toBe(6);
		expect(daemon.routes()).toEqual(wholeRun);
	});
});

describe("elsewhere than on Linux", () => {
	it("says in one sentence what it needs", async () => {
		const disguise = 'data:text/javascript,Object.defineProperty(process, "platform", { value: "darwin" })';
		const child = spawn(process.execPath, ["--import", disguise, program, "status"], {
			stdio: ["ignore", "pipe", "pipe"],
		});
		const [[status], stdout, stderr] = await Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)]);
		expect([status, stdout]).toEqual([1, ""]);
		expect(stderr).toMatch(
			/^turnfs: turnfs needs Linux with FUSE; this is darwin\. .*\(TURNFS_UNSUPPORTED_PLATFORM\)\n$/,
		);
	});
});

describe("without a project", () => {
	it.each(["status", "log", "show 1", "undo --yes", "turn end", "umount"])("%s says how to begin one", async (line) => {
		const { status, stderr } = await turnfs("-C", daemon.folder, ...line.split(" "));
		expect(status).toBe(1);
		expect(stderr).toMatch(/^turnfs: .* is not in a turnfs project\. .*turnfs run.* \(TURNFS_NOT_A_PROJECT\)\n$/);
	});
});
