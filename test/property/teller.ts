/**
 * Tells random sequences, one after the other, in one mounted project: each in a folder of its own and in turns of its own, by
 * one process that stands in the mount. Turns, rewinds and redos go straight to the daemon's socket: starting the command
 * line thousands of times would be most of the time.
 */
import { DaemonClient } from "../../src/daemon/client.js";
import { Worker } from "../scenarios/processes.js";
import { Story } from "../scenarios/story.js";
import { type Comparison, differences, type Tree } from "../scenarios/tree.js";
import type { Op, Sequence } from "./sequences.js";

/** Longer than a whole run may take. */
const WATCHDOG_SECONDS = 1_200;

const neverOnAFolder = new Set(["EIO", "ESTALE", "ENOSYS", "ENOTCONN", "ECONNABORTED", "EREMOTEIO"]);

interface Stage {
	story: Story;
	client: DaemonClient;
	/** Works inside the mount. */
	inside: Worker;
	/** Looks at the folder behind it. */
	behind: Worker;
}

export class Teller {
	#stage: Stage | null = null;
	#count = 0;
	/** The operations of the sequence that is told, with what came of each: part of a failure's message. */
	#results: string[] = [];

	async #ready(): Promise<Stage> {
		if (this.#stage !== null) return this.#stage;
		const story = await Story.open({ prepare: "true" });
		story.project.extendWatchdog(WATCHDOG_SECONDS);
		// Where the client looks for the daemon.
		process.env.XDG_RUNTIME_DIR = story.project.env.XDG_RUNTIME_DIR;
		const { store } = await story.status();
		const { runtimePaths } = await import("../../src/daemon/runtime-files.js");
		const client = new DaemonClient(runtimePaths(story.dir).socket, { project: story.dir, store: store.path });
		const inside = new Worker((command) => story.project.start(command));
		const behind = new Worker((command) => story.project.start(command, { cwd: "/" }));
		this.#stage = { story, client, inside, behind };
		return this.#stage;
	}

	/** @throws with the differences when a tree is not what it was */
	async tell(sequence: Sequence): Promise<void> {
		const stage = await this.#ready();
		this.#results = [];
		try {
			await this.#tellOn(stage, sequence, `case-${++this.#count}`);
		} catch (error) {
			// The next sequence shall not suffer from what this one has broken.
			await this.end(true).catch(() => undefined);
			throw new Error(`${(error as Error).message}\n${this.#results.join("\n")}`);
		}
	}

	async #tellOn(stage: Stage, sequence: Sequence, folder: string): Promise<void> {
		const { client, inside } = stage;
		await inside.request({ do: "mkdir", root: folder });
		await this.#work(stage, folder, "before any turn", sequence.start);
		const begun: { turn: number; tree: Tree }[] = [];
		const begin = async (): Promise<number> => {
			const { turn } = await client.turnBegin({});
			begun.push({ turn, tree: await this.#look(stage, folder) });
			return turn;
		};
		for (const ops of sequence.turns) await this.#work(stage, folder, `turn ${await begin()}`, ops);
		await client.turnEnd({});
		const end = await this.#look(stage, folder);
		for (const [round, pick] of [sequence.back, sequence.again].entries()) {
			const target = begun[pick % begun.length];
			if (target === undefined) throw new Error("a sequence has at least one turn");
			await this.#rewind(stage, folder, target.turn, target.tree);
			if (round > 0) break;
			const from = await this.#look(stage, folder);
			const redone = await client.redo({});
			this.#expectClean(`redo of turn ${target.turn}`, redone);
			await this.#compare(stage, folder, `after redo of turn ${target.turn}`, end, { from });
		}
		if (sequence.after.length > 0) {
			const turn = await begin();
			await this.#work(stage, folder, `turn ${turn}, after the rewind`, sequence.after);
			const last = begun.at(-1);
			if (last !== undefined) await this.#rewind(stage, folder, turn, last.tree);
		}
		await inside.request({ do: "close-all" });
	}

	async #work(stage: Stage, folder: string, when: string, ops: Op[]): Promise<void> {
		const results = (await stage.inside.request({ do: "ops", root: folder, ops })) as string[];
		this.#results.push(`${when}:`, ...ops.map((op, i) => `\t${JSON.stringify(op)} → ${results[i]}`));
		const odd = ops.filter((_, i) => neverOnAFolder.has(results[i] ?? ""));
		if (odd.length > 0) throw new Error(`no plain folder answers so: "${JSON.stringify(odd)}"`);
	}

	async #rewind(stage: Stage, folder: string, turn: number, target: Tree): Promise<void> {
		const from = await this.#look(stage, folder);
		this.#expectClean(`rewind of turn ${turn}`, await stage.client.rewind({ turn }));
		await this.#compare(stage, folder, `after rewind of turn ${turn}`, target, { from });
	}

	#expectClean(
		what: string,
		result: { conflicts: unknown[]; skipped: unknown[]; failed: unknown[]; applied: boolean },
	): void {
		const { conflicts, skipped, failed, applied } = result;
		if (applied && conflicts.length + skipped.length + failed.length === 0) return;
		throw new Error(`${what} was not clean: "${JSON.stringify({ applied, conflicts, skipped, failed })}"`);
	}

	async #look(stage: Stage, folder: string): Promise<Tree> {
		const root = `${stage.story.project.behind}/${folder}`;
		return new Map(Object.entries(await stage.behind.request({ do: "snapshot", root })));
	}

	async #compare(stage: Stage, folder: string, when: string, expected: Tree, options: Comparison): Promise<void> {
		const behind = await this.#look(stage, folder);
		const wrong = differences(expected, behind, options);
		const seen: Tree = new Map(Object.entries(await stage.inside.request({ do: "snapshot", root: folder })));
		wrong.push(...differences(behind, seen).map((line) => `through the mount: ${line}`));
		if (wrong.length > 0) throw new Error(`${when}:\n"${wrong.slice(0, 20).join('"\n"')}"`);
	}

	async end(failed = false): Promise<void> {
		const stage = this.#stage;
		this.#stage = null;
		if (stage === null) return;
		await stage.client.close();
		await stage.inside.stop();
		await stage.behind.stop();
		await stage.story.end(failed, "random turns");
	}
}
