/**
 * A project that lives through turns, told from outside: everything goes through the command line, every state is a whole
 * tree looked at behind the mount. Processes, filesystems and clean-up are those of ../support/temp-project.
 */
import { expect, onTestFinished, vi } from "vitest";
import type { CommandOptions, CommandResult } from "../support/commands.js";
import { mountsBelow } from "../support/mounts.js";
import { type ProjectOptions, TempProject } from "../support/temp-project.js";
import { ordinaryUser } from "../support/users.js";
import { Holder, Process, until, Watcher, Worker } from "./processes.js";
import { type Comparison, differences, type Node, type Tree } from "./tree.js";

export interface StoryOptions {
	/** A shell script that makes the project; its folder's parent is the test's own too (`../outside`). */
	prepare: string;
	/** Mounted from the start; true unless said otherwise. */
	mount?: boolean;
	/** As an ordinary user, with fusermount3. */
	user?: boolean;
	filesystem?: ProjectOptions["backing"];
	/** More arguments for `mount`. */
	mountFlags?: string[];
	env?: NodeJS.ProcessEnv;
}

// biome-ignore lint/suspicious/noExplicitAny: what the command line prints is checked where it is used
type Json = any;

// Some thirty commands and as many looks at the tree a test, on a machine that does other things too.
vi.setConfig({ testTimeout: 300_000 });

const TIMEOUT_MS = 90_000;
/** Longer than any test here should take; after it whatever hangs in a mount is cut off. */
const WATCHDOG_SECONDS = 290;

export class Story {
	readonly project: TempProject;
	readonly dir: string;
	/** The project's parent: scratch space of this test. */
	readonly base: string;
	readonly options: StoryOptions;
	/** Added to the environment of whatever is started from now on. */
	env: NodeJS.ProcessEnv = {};
	#insideLooker: Worker | null = null;
	#behindLooker: Worker | null = null;
	#companions: { stop(): Promise<void> }[] = [];
	#unmounts: string[] = [];
	#states = new Map<number, { behind: Tree; inside: Tree | null }>();
	#from: Tree | null = null;
	firstTurn: number | null = null;
	mounted = false;

	private constructor(project: TempProject, options: StoryOptions) {
		this.project = project;
		this.dir = project.dir;
		this.base = project.top;
		this.options = options;
	}

	/** Whoever opens a story calls `end`. */
	static async open(options: StoryOptions): Promise<Story> {
		const project = await TempProject.create({
			...(options.filesystem && { backing: options.filesystem }),
			...(options.user && { user: ordinaryUser() }),
			...(options.env && { env: options.env }),
			watchdogSeconds: WATCHDOG_SECONDS,
			lifetime: "caller",
		});
		const story = new Story(project, options);
		try {
			await story.sh(options.prepare);
			if (options.mount ?? true) await story.mount();
		} catch (error) {
			await story.end(true).catch(() => undefined); // the first error is the one to tell
			throw error;
		}
		return story;
	}

	/** For one test, at whose end it is taken away. */
	static async start(options: StoryOptions): Promise<Story> {
		const story = await Story.open(options);
		onTestFinished(({ task }) => story.end(task.result?.state === "fail", task.name), 60_000);
		return story;
	}

	#ordinary(): boolean {
		return this.options.user ?? false;
	}

	/** Runs a program to its end, whatever its status. */
	run(command: string[], options: CommandOptions = {}): Promise<CommandResult> {
		const env = { ...this.env, ...options.env };
		return this.project.run(command, { timeoutMs: TIMEOUT_MS, expectStatus: null, ...options, env });
	}

	/** A shell script in the project (inside the mount when there is one). @throws when it fails */
	sh(script: string, options: CommandOptions = {}): Promise<CommandResult> {
		return this.run(["/bin/bash", "--norc", "-euo", "pipefail", "-c", script], { expectStatus: 0, ...options });
	}

	/** A shell script in the folder behind the mount, as somebody does who doesn't go through it. */
	behind(script: string): Promise<CommandResult> {
		return this.sh(script, { cwd: this.project.behind });
	}

	asRoot(script: string, cwd = this.project.behind): Promise<CommandResult> {
		return this.sh(script, { cwd, as: { uid: 0, gid: 0 } });
	}

	/** The words of `turnfs …`; on this story's project unless they say `-C` themselves. */
	command(...args: string[]): string[] {
		const folder = args.includes("-C") ? [] : ["-C", this.dir];
		return [this.project.product.node, this.project.product.cli, ...folder, ...args];
	}

	/** `turnfs -C <project> …`, whatever comes of it. */
	cli(...args: string[]): Promise<CommandResult> {
		return this.run(this.command(...args), { cwd: this.base });
	}

	/** The same, but it must exit with 0. */
	async ok(...args: string[]): Promise<CommandResult> {
		const done = await this.cli(...args);
		const said = `${done.stdout.slice(0, 3000)}\n${done.stderr}`;
		expect(done.status, `turnfs ${args.join(" ")}\n${said}`).toBe(0);
		return done;
	}

	/** The same with --json, parsed. */
	async json(...args: string[]): Promise<Json> {
		return JSON.parse((await this.ok(...args, "--json")).stdout);
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

	async #snapshot(looker: Worker, root: string): Promise<Tree> {
		return new Map(Object.entries((await looker.request({ do: "snapshot", root })) as Record<string, Node>));
	}

	/** The whole project as it is behind the mount. The store in it, if it is there, is not part of it. */
	tree(): Promise<Tree> {
		return this.#lookBehind(this.project.behind);
	}

	#lookBehind(root: string): Promise<Tree> {
		this.#behindLooker ??= new Worker((command) => this.project.start(command, { cwd: "/", as: { uid: 0, gid: 0 } }));
		return this.#snapshot(this.#behindLooker, root);
	}

	/** The whole project as its user sees it through the mount; null without one. */
	async inside(): Promise<Tree | null> {
		if (!this.mounted) return null;
		this.#insideLooker ??= new Worker((command) => this.project.start(command, { cwd: "/" }));
		return this.#snapshot(this.#insideLooker, this.dir);
	}

	/** Some other folder of the test, relative to the project, without what reading or linking it changes. */
	async treeOf(path: string): Promise<Tree> {
		const tree = await this.#lookBehind(`${this.project.behind}/${path}`);
		for (const node of tree.values()) Object.assign(node, { ctimeNs: "", nlink: 0, dev: 0 });
		return tree;
	}

	/**
	 * The project must be as `expected`, and the same must be seen through the mount. Which folders must be the very same ones
	 * is known from the tree that the last rewind or redo started from.
	 */
	async expectTree(expected: Tree, options: Comparison = {}): Promise<void> {
		const behind = await this.tree();
		const copies = this.options.filesystem === "overlayfs";
		expectNone(differences(expected, behind, { from: this.#from ?? expected, copies, ...options }));
		const inside = await this.inside();
		// What an ordinary user may not read can't be compared with what root sees.
		if (inside === null || this.#ordinary()) return;
		expectNone(differences(behind, inside, options).map((line) => `through the mount: ${line}`));
	}

	/** Besides: what a program inside the mount sees of a turn's beginning, the number of links too, is as it was. */
	async expectInside(turn: number): Promise<void> {
		const then = this.#states.get(turn)?.inside;
		const now = await this.inside();
		if (then && now) expectNone(differences(then, now, { linkCounts: "same" }));
	}

	async rewindResult(turn: number | string, ...flags: string[]): Promise<CommandResult> {
		this.#from = await this.tree();
		return this.cli("rewind", String(turn), "--yes", "--json", ...flags);
	}

	async rewind(turn: number | string, ...flags: string[]): Promise<Json> {
		this.#from = await this.tree();
		return this.json("rewind", String(turn), "--yes", ...flags);
	}

	async undo(...flags: string[]): Promise<Json> {
		this.#from = await this.tree();
		return this.json("undo", "--yes", ...flags);
	}

	async redo(...flags: string[]): Promise<Json> {
		this.#from = await this.tree();
		return this.json("redo", "--yes", ...flags);
	}

	async read(path: string): Promise<string> {
		return (await this.run(["cat", "--", path])).stdout;
	}

	async exists(path: string): Promise<boolean> {
		return (await this.run(["test", "-e", path])).status === 0;
	}

	async sizes(path: string): Promise<{ size: number; allocated: number }> {
		const [size, blocks] = (await this.behind(`stat -c '%s %b' -- '${path}'`)).stdout.split(" ").map(Number);
		return { size: size ?? 0, allocated: (blocks ?? 0) * 512 };
	}

	async sameInode(one: string, other: string): Promise<boolean> {
		const [a, b] = (await this.behind(`stat -c %d:%i -- '${one}' '${other}'`)).stdout.trim().split("\n");
		return a !== undefined && a === b;
	}

	async status(): Promise<Json> {
		return this.json("status");
	}

	/** The store's folder, by a path that also leads there when it lies in the mounted project. */
	async #store(): Promise<string> {
		const path: string = (await this.status()).store.path;
		return path.startsWith(`${this.dir}/`) ? this.project.behind + path.slice(this.dir.length) : path;
	}

	async #bytesIn(...folders: string[]): Promise<number> {
		const sizes = await this.run(["du", "-s", "-c", "--block-size=1", ...folders], {
			cwd: "/",
			as: { uid: 0, gid: 0 },
		});
		return Number(sizes.stdout.trim().split("\n").at(-1)?.split("\t")[0]);
	}

	/** Bytes that the store takes on its disk. */
	async storeBytes(): Promise<number> {
		return this.#bytesIn(await this.#store());
	}

	/** Bytes of the contents that were copied into the store (preserved files are not). */
	async packedBytes(): Promise<number> {
		const store = await this.#store();
		return this.#bytesIn(`${store}/packs`, `${store}/blobs`);
	}

	/** Unmounts, ends the daemon, and lets a script loose in the store's folder. */
	async damageStore(script: string): Promise<void> {
		const store = await this.#store();
		await this.umountIfMounted();
		await this.stopDaemon();
		await this.asRoot(script, store);
	}

	/** Ends the daemon in order, as it would by itself after a while. */
	async stopDaemon(): Promise<void> {
		const { pids } = await this.status();
		process.kill(pids.daemon, "SIGTERM");
		await until(() => !isAlive(pids.daemon), "the end of the daemon");
	}

	/** A filesystem of some MiB beside the project, in a folder of that name. */
	async tinyFilesystem(name: string, mib: number): Promise<string> {
		const at = `${this.base}/${name}`;
		await this.asRoot(`mkdir '${at}' && mount -t tmpfs -o size=${mib}m,mode=700 none '${at}'`, "/");
		this.#unmounts.push(at);
		return at;
	}

	/** After a crash: the mount is gone by itself, and the folder plain. */
	async waitUnmounted(): Promise<void> {
		await until(() => !mountsBelow(this.dir).some((mount) => mount.mountpoint === this.dir), "the mount to go");
		this.mounted = false;
	}

	#companion<T extends { stop(): Promise<void> }>(one: T): T {
		this.#companions.push(one);
		return one;
	}

	#start = (command: string[]) => this.project.start(command, { env: this.env });

	async hold(): Promise<Holder> {
		return this.#companion(new Holder(this.#start));
	}

	async watch(...folders: string[]): Promise<Watcher> {
		const watcher = this.#companion(new Watcher(this.#start, folders));
		await watcher.ready();
		return watcher;
	}

	spawn(command: string[], options: CommandOptions = {}): Process {
		return this.#companion(
			new Process((words) => this.project.start(words, { ...options, env: { ...this.env, ...options.env } }), command),
		);
	}

	/** A shell in the project, for a turn with an owner. */
	shell(): Process {
		return this.spawn(["/bin/bash", "--norc"]);
	}

	/** Ends the programs that would keep the mount busy. */
	async release(): Promise<void> {
		for (const one of this.#companions.splice(0)) await one.stop();
	}

	async end(failed = false, name = "a story"): Promise<void> {
		await this.release();
		for (const looker of [this.#insideLooker, this.#behindLooker]) await looker?.stop();
		try {
			await this.project.cleanUp(failed ? name : null);
		} finally {
			for (const at of this.#unmounts) await this.run(["umount", at], { cwd: "/", as: { uid: 0, gid: 0 } });
		}
	}
}

/** Fails with the differences, of which the first forty tell enough. */
function expectNone(found: string[]): void {
	const more = found.length > 40 ? [`… and ${found.length - 40} more`] : [];
	expect([...found.slice(0, 40), ...more]).toEqual([]);
}

export function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

/** An error is one sentence for a person with a stable code, and no stack trace. */
export function expectSentence(result: CommandResult, code = "TURNFS_"): void {
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
