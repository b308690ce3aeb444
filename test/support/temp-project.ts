/**
 * A project folder for one test, with everything around it: home, state and runtime folders of its own, the product's verbs,
 * shells inside the mount, the tree oracle, a watchdog, and a clean-up that fails the test when something is left over.
 *
 * Fresh processes are started for whatever happens on the mount, with the folder resolved by path, as an agent's would be.
 */
import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, type TestContext } from "vitest";
import { type BackingFolder, type BackingKind, getBacking, testPlace } from "./backing.js";
import {
	type CommandOptions,
	type CommandResult,
	killGroup,
	plainEnvironment,
	runCommand,
	startCommand,
	type UserIds,
} from "./commands.js";
import { reportFailure } from "./failure-report.js";
import { findLeftovers, stopEverything } from "./leftovers.js";
import { builtProduct, type Product } from "./product.js";
import { type CompareOptions, expectSameTree, type Snapshot, snapshotTree } from "./snapshot.js";
import { root } from "./users.js";
import type { Watchdog } from "./watchdog.js";

export interface ProjectOptions {
	/** Default ext4. */
	backing?: BackingKind;
	/** Whose project it is, and who runs the product and the shells. Default root. */
	user?: UserIds;
	/** After this time the mounts are aborted. Default 50 s, below the test's own 60 s. */
	watchdogSeconds?: number;
	/** Fills the project before it is first seen; on overlayfs this is the lower layer. Given the project folder, run as root. */
	seed?: (project: string) => Promise<void>;
	/** Name of the project folder. */
	name?: string;
	/** More environment for everything that is started. */
	env?: NodeJS.ProcessEnv;
	/** "test" (default) cleans up when the running test ends; "caller": call `cleanUp` (for beforeAll … afterAll). */
	lifetime?: "test" | "caller";
}

let counter = 0;

export class TempProject {
	/** The project, and the mount once there is one. */
	readonly dir: string;
	/** The same folder behind the mount, whatever is mounted. */
	readonly behind: string;
	/** Everything of this test: project, home, state, run. Fits for scratch files too. */
	readonly top: string;
	readonly user: UserIds;
	readonly env: NodeJS.ProcessEnv;
	readonly product: Product;
	/** Every command that was run, with its result: part of a failure's report. */
	readonly transcript: string[] = [];
	readonly #id: string;
	readonly #watchdog: Watchdog;
	readonly #started = new Set<ChildProcess>();

	private constructor(
		id: string,
		folder: BackingFolder,
		name: string,
		product: Product,
		base: string,
		watchdog: Watchdog,
		options: ProjectOptions,
	) {
		this.#id = id;
		this.#watchdog = watchdog;
		this.top = folder.path;
		this.dir = join(folder.path, name);
		this.behind = join(folder.behind, name);
		this.user = options.user ?? root;
		this.product = product;
		this.env = plainEnvironment({
			HOME: join(this.top, "home"),
			XDG_STATE_HOME: join(this.top, "state"),
			XDG_RUNTIME_DIR: join(this.top, "run"),
			XDG_CONFIG_HOME: join(this.top, "home", ".config"),
			XDG_CACHE_HOME: join(this.top, "home", ".cache"),
			TMPDIR: join(this.top, "tmp"),
			TURNFS_TEST_BASE: base,
			TURNFS_TEST_PROJECT: id,
			GIT_CONFIG_NOSYSTEM: "1",
			GIT_AUTHOR_NAME: "Test",
			GIT_AUTHOR_EMAIL: "test@example.org",
			GIT_COMMITTER_NAME: "Test",
			GIT_COMMITTER_EMAIL: "test@example.org",
			...options.env,
		});
	}

	static async create(
		options: ProjectOptions = {},
		context?: Pick<TestContext, "onTestFinished">,
	): Promise<TempProject> {
		const { base, watchdog } = await testPlace();
		const backing = await getBacking(options.backing ?? "ext4");
		const id = `p${process.pid}-${++counter}`;
		const name = options.name ?? "project";
		const user = options.user ?? root;
		const folder = await backing.makeFolder(id, async (top) => {
			chmodSync(top, 0o755);
			chownSync(top, user.uid, user.gid);
			for (const part of [name, "home", "state", "run", "tmp"]) {
				const dir = join(top, part);
				mkdirSync(dir);
				chmodSync(dir, part === "run" ? 0o700 : 0o755);
				chownSync(dir, user.uid, user.gid);
			}
			await options.seed?.(join(top, name));
		});
		const project = new TempProject(id, folder, name, builtProduct(base), base, watchdog, options);
		watchdog.arm(id, options.watchdogSeconds ?? 50, folder.path);
		if (options.lifetime !== "caller") {
			(context?.onTestFinished ?? onTestFinished)(async ({ task }) => {
				await project.cleanUp(task.result?.state === "fail" ? task.name : null);
			}, 60_000);
		}
		return project;
	}

	/** Runs a verb of the product with the project as working directory (inside the mount when there is one). */
	async turnfs(args: string[], options: CommandOptions = {}): Promise<CommandResult> {
		return this.run([this.product.node, this.product.cli, ...args], options);
	}

	/** The same with --json; what it printed, parsed. */
	async turnfsJson<T = Record<string, unknown>>(args: string[], options: CommandOptions = {}): Promise<T> {
		const result = await this.turnfs([...args, "--json"], options);
		return JSON.parse(result.stdout) as T;
	}

	/** A bash script in the project, in a fresh process: through the mount when there is one. Fails at the first failing command. */
	async shell(script: string, options: CommandOptions = {}): Promise<CommandResult> {
		return this.run(["/bin/bash", "-euo", "pipefail", "-c", script], options);
	}

	/** The same in the plain folder, behind the mount. */
	async shellBehind(script: string, options: CommandOptions = {}): Promise<CommandResult> {
		return this.shell(script, { cwd: this.behind, ...options });
	}

	/** A Python script (its text) in the project, for system calls that no shell tool makes. */
	async python(script: string, args: string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
		return this.run(["/usr/bin/python3", "-I", "-c", script, ...args], options);
	}

	async run(command: string[], options: CommandOptions = {}): Promise<CommandResult> {
		const started = Date.now();
		const shown = command.map((word) => (word.length > 400 ? `${word.slice(0, 400)}…` : word)).join(" ");
		try {
			const result = await runCommand(command, {
				cwd: this.dir,
				as: this.user,
				...options,
				env: { ...this.env, ...options.env },
			});
			this.transcript.push(
				`$ ${shown}\n→ ${result.status} after ${Date.now() - started} ms\n${result.stdout}${result.stderr}`,
			);
			return result;
		} catch (error) {
			this.transcript.push(`$ ${shown}\n→ failed after ${Date.now() - started} ms: ${(error as Error).message}`);
			throw error;
		}
	}

	/** Starts a program that runs beside the test; killed at the end. */
	start(command: string[], options: CommandOptions = {}): ChildProcess {
		const child = startCommand(command, {
			cwd: this.dir,
			as: this.user,
			...options,
			env: { ...this.env, ...options.env },
		});
		this.#started.add(child);
		child.once("close", () => this.#started.delete(child));
		return child;
	}

	async mount(args: string[] = []): Promise<void> {
		await this.turnfs(["mount", ...args]);
	}

	async umount(args: string[] = []): Promise<void> {
		await this.turnfs(["umount", ...args]);
	}

	/** Begins a turn; its number. */
	async beginTurn(args: string[] = []): Promise<number> {
		return (await this.turnfsJson<{ turn: number }>(["turn", "begin", ...args])).turn;
	}

	async endTurn(): Promise<void> {
		await this.turnfs(["turn", "end"]);
	}

	/** A whole turn made of one script; its number. The project must be mounted. */
	async turn(script: string, options: CommandOptions = {}): Promise<number> {
		const turn = await this.beginTurn();
		await this.shell(script, options);
		await this.endTurn();
		return turn;
	}

	async rewind(turn: number | "last", args: string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
		return this.turnfs(["rewind", String(turn), "--yes", ...args], options);
	}

	async redo(args: string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
		return this.turnfs(["redo", "--yes", ...args], options);
	}

	/** The tree as it is behind the mount: what really lies in the folder. A store inside the project is left out. */
	async snapshot(): Promise<Snapshot> {
		return snapshotTree(this.behind, { exclude: [".turnfs"] });
	}

	/** The tree as the project's user sees it, through the mount when there is one. */
	async snapshotThroughMount(): Promise<Snapshot> {
		return snapshotTree(this.dir, { as: this.user });
	}

	/**
	 * The folder must be as `expected`, and the mount must show the same.
	 * Default for `inodes`: not compared.
	 */
	async expectTree(expected: Snapshot, options: CompareOptions = {}): Promise<void> {
		expectSameTree(expected, await this.snapshot(), options);
		const unreadable = this.user.uid === 0 ? {} : { exclude: unreadablePaths(await this.snapshotThroughMount()) };
		expectSameTree(await this.snapshot(), await this.snapshotThroughMount(), { inodes: "same", ...unreadable });
	}

	/** Gives a slow test more time before the mounts are aborted; raise the test's own time-out too. */
	extendWatchdog(seconds: number): void {
		this.#watchdog.arm(this.#id, seconds, this.top);
	}

	/**
	 * Ends everything and looks for what was left. Called by itself unless `lifetime` is "caller".
	 * @param failedTest name of the test when it failed: logs are kept then
	 * @throws when the product left a mount, a process or a sanitizer's report behind, or a mount had to be aborted
	 */
	async cleanUp(failedTest: string | null = null): Promise<void> {
		for (const child of this.#started) killGroup(child.pid, "SIGKILL");
		const troubles = this.#watchdog.aborted(this.top).map((line) => `the test took too long: watchdog ${line}`);
		troubles.push(...(await stopEverything(this, this.#id)));
		troubles.push(...(await findLeftovers(this, this.#id)));
		this.#watchdog.disarm(this.#id);
		if (failedTest === null && troubles.length === 0) return;
		const report = await reportFailure(this, failedTest ?? this.#id, troubles);
		if (failedTest !== null) console.error(`logs of the failed test: ${report}`);
		if (troubles.length > 0) throw new Error(`${troubles.join("\n")}\nlogs: ${report}`);
	}
}

function unreadablePaths(snapshot: Snapshot): string[] {
	return [...snapshot].filter(([, entry]) => entry.unreadable).map(([path]) => path);
}
