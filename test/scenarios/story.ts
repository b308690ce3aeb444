/**
 * A project that lives through turns, told from outside: everything goes through the command line, every state is a whole
 * tree looked at behind the mount.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Area, isAlive, makeArea } from "./area.js";
import { Holder, Process, type ProcessPlace, until, Watcher, Worker } from "./processes.js";
import { type Comparison, differences, type Node, readTree, type Tree } from "./tree.js";

export interface StoryOptions {
	/** A shell script that makes the project; its folder's parent is the test's own too (`../outside`). */
	prepare: string;
	/** Mounted from the start; true unless said otherwise. */
	mount?: boolean;
	/** As an ordinary user, with fusermount3. */
	user?: boolean;
	filesystem?: "ext4" | "overlayfs";
	/** More arguments for `mount`. */
	mountFlags?: string[];
	env?: NodeJS.ProcessEnv;
}

export interface Result {
	status: number | null;
	signal: NodeJS.Signals | null;
	stdout: string;
	stderr: string;
}

export interface RunOptions {
	cwd?: string;
	env?: NodeJS.ProcessEnv;
	input?: string;
	timeoutMs?: number;
	/** As root, though the story is an ordinary user's. */
	root?: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: what the command line prints is checked where it is used
type Json = any;

const COMMAND = resolve(process.env["TURNFS_CLI"] ?? "dist/cli/main.js");
const TIMEOUT_MS = 90_000;

export class Story {
	readonly area: Area;
	readonly dir: string;
	readonly env: NodeJS.ProcessEnv;
	readonly options: StoryOptions;
	/** A descriptor of the folder from before any mount: the way behind it. */
	#behind: number;
	#lookers = new Map<number, Worker>();
	#unmounts: string[] = [];
	#companions: { stop(): Promise<void> }[] = [];
	#states = new Map<number, { behind: Tree; inside: Tree | null }>();
	#from: Tree | null = null;
	firstTurn: number | null = null;
	mounted = false;

	private constructor(area: Area, options: StoryOptions) {
		this.area = area;
		this.dir = area.project;
		this.options = options;
		this.env = { ...area.env, ...options.env };
		this.#behind = openSync(this.dir, constants.O_RDONLY | constants.O_DIRECTORY);
	}

	/** Whoever opens a story calls `end`. */
	static async open(options: StoryOptions): Promise<Story> {
		const area = await makeArea({ user: options.user ?? false, filesystem: options.filesystem ?? "ext4" });
		const story = new Story(area, options);
		try {
			await story.sh(options.prepare);
			if (options.mount ?? true) await story.mount();
		} catch (error) {
			await story.end();
			throw error;
		}
		return story;
	}

	/** For one test, at whose end it is taken away. */
	static async start(options: StoryOptions): Promise<Story> {
		const story = await Story.open(options);
		onTestFinished(() => story.end(), 60_000);
		return story;
	}

	/** Where programs of this story run: in the project, as its user. */
	place(options: RunOptions = {}): ProcessPlace {
		const place: ProcessPlace = { cwd: options.cwd ?? this.dir, env: { ...this.env, ...options.env } };
		if (this.area.user !== null && !options.root) Object.assign(place, this.area.user);
		return place;
	}

	/** Runs a program to its end. One that hangs is killed, and the mount it may hang in is cut off. */
	run(command: string, args: string[], options: RunOptions = {}): Promise<Result> {
		return new Promise((resolve, reject) => {
			const child: ChildProcess = spawn(command, args, { ...this.place(options), stdio: "pipe" });
			let [stdout, stderr] = ["", ""];
			child.stdout?.setEncoding("utf8").on("data", (text) => {
				stdout += text;
			});
			child.stderr?.setEncoding("utf8").on("data", (text) => {
				stderr += text;
			});
			child.stdin?.on("error", () => {}); // the program need not read it
			child.stdin?.end(options.input ?? "");
			let hung = false;
			const timer = setTimeout(() => {
				hung = true;
				child.kill("SIGKILL");
				this.cutOff();
			}, options.timeoutMs ?? TIMEOUT_MS);
			child.on("error", reject);
			child.on("close", (status, signal) => {
				clearTimeout(timer);
				if (hung) reject(new Error(`${command} ${args.join(" ")} hung\n${stdout}\n${stderr}`));
				else resolve({ status, signal, stdout, stderr });
			});
		});
	}

	/** A shell script in the project (inside the mount when there is one). @throws when it fails */
	async sh(script: string, options: RunOptions = {}): Promise<Result> {
		const done = await this.run("bash", ["-euo", "pipefail", "-c", script], options);
		if (done.status !== 0)
			throw new Error(`the script failed (${done.status ?? done.signal}): ${script}\n${done.stderr}`);
		return done;
	}

	/** A shell script in the folder behind the mount, as somebody does who doesn't go through it. */
	behind(script: string): Promise<Result> {
		return this.sh(script, { cwd: `/proc/${process.pid}/fd/${this.#behind}` });
	}

	asRoot(script: string): Promise<Result> {
		return this.sh(script, { root: true });
	}

	/** The program and arguments of `turnfs …`; on this story's project unless the arguments say `-C` themselves. */
	command(...args: string[]): [string, string[]] {
		const folder = args.includes("-C") ? [] : ["-C", this.dir];
		return [process.execPath, [COMMAND, ...folder, ...args]];
	}

	/** `turnfs -C <project> …`, whatever comes of it. */
	cli(...args: string[]): Promise<Result> {
		return this.run(...this.command(...args), { cwd: this.area.base });
	}

	/** The same, but it must exit with 0. */
	async ok(...args: string[]): Promise<Result> {
		const done = await this.cli(...args);
		expect(done, `turnfs ${args.join(" ")}`).toMatchObject({ status: 0 });
		return done;
	}

	/** The same with --json, parsed. */
	async json(...args: string[]): Promise<Json> {
		const verb = args.findIndex((arg) => arg === "--");
		const at = verb < 0 ? args.length : verb;
		const done = await this.ok(...args.slice(0, at), "--json", ...args.slice(at));
		return JSON.parse(done.stdout);
	}

	async mount(...flags: string[]): Promise<void> {
		await this.ok("mount", ...(this.options.mountFlags ?? []), ...flags);
		this.mounted = true;
	}

	async umount(...flags: string[]): Promise<void> {
		await this.ok("umount", ...flags);
		this.mounted = false;
	}

	async umountIfMounted(): Promise<void> {
		if (this.mounted) await this.umount();
	}

	async beginTurn(...flags: string[]): Promise<number> {
		const { turn } = await this.json("turn", "begin", ...flags);
		this.firstTurn ??= turn;
		this.#states.set(turn, { behind: await this.tree(), inside: await this.inside() });
		return turn;
	}

	async endTurn(): Promise<void> {
		await this.ok("turn", "end");
	}

	/** One turn in which a script, or a function, does its work. */
	async turn(work: string | (() => unknown), ...flags: string[]): Promise<number> {
		const turn = await this.beginTurn(...flags);
		if (typeof work === "string") await this.sh(work);
		else await work();
		await this.endTurn();
		return turn;
	}

	/** The tree as it stood when a turn began. */
	before(turn: number): Tree {
		const state = this.#states.get(turn);
		if (state === undefined) throw new Error(`this story had no turn ${turn}`);
		return state.behind;
	}

	#looker(root: boolean): Worker {
		const user = this.area.user !== null && !root ? this.area.user : null;
		const key = user?.uid ?? 0;
		let looker = this.#lookers.get(key);
		if (looker === undefined) {
			looker = new Worker({ cwd: "/", env: this.env, ...user });
			this.#lookers.set(key, looker);
		}
		return looker;
	}

	async #snapshot(root: string, asRoot: boolean): Promise<Tree> {
		return readTree((await this.#looker(asRoot).request({ do: "snapshot", root })) as Record<string, Node>);
	}

	/** The whole project as it is behind the mount. The store in it, if it is there, is not part of it. */
	tree(): Promise<Tree> {
		return this.#snapshot(`/proc/${process.pid}/fd/${this.#behind}`, true);
	}

	/** The whole project as seen through the mount; null without one, or when root may not look into a user's. */
	async inside(): Promise<Tree | null> {
		return this.mounted && this.area.user === null ? this.#snapshot(this.dir, true) : null;
	}

	/** Some other folder of the test, relative to the project. */
	treeOf(path: string): Promise<Tree> {
		return this.#snapshot(join(this.dir, path), true);
	}

	/**
	 * The project must be as `expected`, and the same must be seen through the mount. Which folders must be the very same ones
	 * is known from the tree that the last rewind or redo started from.
	 */
	async expectTree(expected: Tree, options: Comparison = {}): Promise<void> {
		const behind = await this.tree();
		expect(
			differences(expected, behind, { from: this.#from ?? expected, ...this.area.comparison, ...options }),
		).toEqual([]);
		const inside = await this.inside();
		if (inside !== null)
			expect(differences(behind, inside, options).map((line) => `through the mount: ${line}`)).toEqual([]);
	}

	/** Besides: what a program inside the mount sees of a turn's beginning, the number of links too, is as it was. */
	async expectInside(turn: number): Promise<void> {
		const then = this.#states.get(turn)?.inside;
		const now = await this.inside();
		if (then && now) expect(differences(then, now, { links: true })).toEqual([]);
	}

	async rewindResult(turn: number | string, ...flags: string[]): Promise<Result> {
		this.#from = await this.tree();
		return this.cli("rewind", String(turn), "--yes", "--json", ...flags);
	}

	async rewind(turn: number | string, ...flags: string[]): Promise<Json> {
		this.#from = await this.tree();
		return this.json("rewind", String(turn), "--yes", ...flags);
	}

	async redo(...flags: string[]): Promise<Json> {
		this.#from = await this.tree();
		return this.json("redo", "--yes", ...flags);
	}

	async read(path: string): Promise<string> {
		return (await this.run("cat", ["--", path])).stdout;
	}

	async exists(path: string): Promise<boolean> {
		return (await this.run("test", ["-e", path])).status === 0;
	}

	async sizes(path: string): Promise<{ size: number; allocated: number }> {
		const [size, blocks] = (await this.sh(`stat -c '%s %b' -- '${path}'`)).stdout.split(" ").map(Number);
		return { size: size ?? 0, allocated: (blocks ?? 0) * 512 };
	}

	async sameInode(one: string, other: string): Promise<boolean> {
		const [a, b] = [one, other].map((path) => statSync(join(`/proc/self/fd/${this.#behind}`, path), { bigint: true }));
		return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
	}

	async status(): Promise<Json> {
		return this.json("status");
	}

	/** The store's folder, by a path that also leads there when it lies in the mounted project. */
	async #store(): Promise<string> {
		const { store } = await this.status();
		const path = store.path as string;
		return path.startsWith(`${this.dir}/`)
			? `/proc/${process.pid}/fd/${this.#behind}${path.slice(this.dir.length)}`
			: path;
	}

	async #bytesIn(folder: string): Promise<number> {
		return Number((await this.sh(`du -s --block-size=1 '${folder}' | cut -f1`, { root: true, cwd: "/" })).stdout);
	}

	/** Bytes that the store takes on its disk. */
	async storeBytes(): Promise<number> {
		return this.#bytesIn(await this.#store());
	}

	/** Bytes of the contents that were copied into the store (preserved files are not). */
	async packedBytes(): Promise<number> {
		const store = await this.#store();
		return (await this.#bytesIn(`${store}/packs`)) + (await this.#bytesIn(`${store}/blobs`));
	}

	/** Unmounts, ends the daemon, and lets a script loose in the store's folder. */
	async damageStore(script: string): Promise<void> {
		const store = await this.#store();
		await this.umountIfMounted();
		await this.stopDaemon();
		await this.sh(script, { root: true, cwd: store });
	}

	/** Ends the daemon in order, as it would by itself after a while. */
	async stopDaemon(): Promise<void> {
		const { pids } = await this.status();
		process.kill(pids.daemon, "SIGTERM");
		await until(() => !isAlive(pids.daemon), "the end of the daemon");
	}

	/** A filesystem of some MiB beside the project, in a folder of that name. */
	async tinyFilesystem(name: string, mib: number): Promise<void> {
		const at = join(this.area.base, name);
		await this.sh(`mkdir '${at}' && mount -t tmpfs -o size=${mib}m,mode=700 none '${at}'`, { root: true, cwd: "/" });
		this.#unmounts.push(at);
	}

	/** After a crash: the mount is gone by itself, and the folder plain. */
	async waitUnmounted(): Promise<void> {
		await until(
			() =>
				!readFileSync("/proc/self/mountinfo", "utf8")
					.split("\n")
					.some((line) => line.split(" ")[4] === this.dir),
			"the mount to go",
		);
		this.mounted = false;
	}

	#companion<T extends { stop(): Promise<void> }>(one: T): T {
		this.#companions.push(one);
		return one;
	}

	async hold(): Promise<Holder> {
		return this.#companion(new Holder(this.place()));
	}

	async watch(...folders: string[]): Promise<Watcher> {
		const watcher = this.#companion(new Watcher(folders, this.place()));
		await watcher.ready();
		return watcher;
	}

	spawn(command: string, args: string[], options: RunOptions = {}): Process {
		return this.#companion(new Process(command, args, this.place(options)));
	}

	/** A shell in the project, for a turn with an owner. */
	ownShell(): Process {
		return this.spawn("bash", []);
	}

	until(done: () => boolean | Promise<boolean>): Promise<void> {
		return until(done);
	}

	/** Ends the programs that would keep the mount busy. */
	async release(): Promise<void> {
		for (const one of this.#companions.splice(0)) await one.stop();
	}

	/** Answers what hangs in the mount with ENOTCONN. */
	cutOff(): void {
		for (const line of readFileSync("/proc/self/mountinfo", "utf8").split("\n")) {
			const [, , device, , at] = line.split(" ");
			if (at !== this.dir || !line.includes("turnfs")) continue;
			const control = "/sys/fs/fuse/connections";
			if (!existsSync(`${control}/${device?.split(":")[1]}`)) {
				execFileSync("mount", ["-t", "fusectl", "none", control]);
			}
			writeFileSync(`${control}/${device?.split(":")[1]}/abort`, "1");
		}
	}

	async end(): Promise<void> {
		await this.release();
		const pids = new Set<number>();
		const status = await this.cli("status", "--json").catch(() => null);
		if (status?.status === 0) {
			const { pids: known } = JSON.parse(status.stdout) as { pids: Record<string, number | null> };
			for (const pid of Object.values(known ?? {})) if (pid) pids.add(pid);
		}
		if (this.mounted) await this.cli("umount").catch(() => null);
		for (const looker of this.#lookers.values()) await looker.stop();
		closeSync(this.#behind);
		await this.area.remove([...pids], this.#unmounts);
	}
}

/** An error is one sentence for a person with a stable code, and no stack trace. */
export function expectSentence(result: Result, code = "TURNFS_"): void {
	expect(result.stderr).toContain(code);
	expect(result.stderr).toMatch(/^turnfs: [^\n]+\(TURNFS_[A-Z_]+\)$/m);
	expect(result.stderr).not.toMatch(/^ {4}at /m);
}

export interface RoundTrip {
	/** When the turns were told already: the tree at the first turn's beginning, and the present one. */
	before?: Tree;
	after?: Tree;
	/** The story has been rewound to `before` already. */
	rewound?: boolean;
}

/**
 * Tells the turns, then goes back and forward, mounted and unmounted, and compares whole trees each time: to the first turn,
 * forward again, to the last turn, forward again; unmounted to the first, forward, and to the first once more.
 */
export async function roundTrip(
	story: Story,
	turns: (string | (() => unknown))[],
	options: RoundTrip = {},
): Promise<void> {
	let last = story.firstTurn ?? 0;
	for (const work of turns) last = await story.turn(work);
	const first = story.firstTurn;
	if (first === null) throw new Error("a story needs a turn");
	const before = options.before ?? story.before(first);
	const after = options.after ?? (await story.tree());
	if (!options.rewound) {
		await story.rewind(first);
		await story.expectTree(before);
		await story.expectInside(first);
	}
	await story.redo();
	await story.expectTree(after);
	if (turns.length > 1) {
		await story.rewind(last);
		await story.expectTree(story.before(last));
		await story.expectInside(last);
		await story.redo();
		await story.expectTree(after);
	}
	await story.release();
	await story.umount();
	await story.expectTree(after);
	await story.rewind(first);
	await story.expectTree(before);
	await story.redo();
	await story.expectTree(after);
	await story.rewind(first);
	await story.expectTree(before);
	await story.mount();
	await story.expectTree(before);
}
