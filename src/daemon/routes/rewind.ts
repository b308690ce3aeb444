import type { FastifyInstance } from "fastify";
import { redoProject, rewindProject } from "../../rewind/rewind.js";
import { type RewindResponse, redoRequestSchema, rewindRequestSchema } from "../api.js";
import { finishInterruptedRewinds } from "../interrupted-rewinds.js";
import type { ProjectDaemon } from "../project-daemon.js";

export function registerRewind(app: FastifyInstance, daemon: ProjectDaemon): void {
	app.post("/rewind", (request) => {
		const options = rewindRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(() => withOpenTurn(daemon, () => rewindProject(daemon, options)));
	});
	app.post("/redo", (request) => {
		const options = redoRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(() => withOpenTurn(daemon, () => redoProject(daemon, options)));
	});
}

/** A `run` whose turn was rewound goes on in a turn that begins for it: its end ends that one. */
async function withOpenTurn(daemon: ProjectDaemon, work: () => Promise<RewindResponse>): Promise<RewindResponse> {
	const before = await daemon.openTurn();
	if (before !== null) await daemon.loadOwnerStart(before);
	const done = await work().catch((error: unknown) => {
		// Half of a rewind is nobody's state: what had begun is finished as soon as this call has been answered.
		void daemon.serial.run(() => finishInterruptedRewinds(daemon));
		throw error;
	});
	const after = await daemon.openTurn();
	if (before !== null && after !== null && after.turn !== before.turn) {
		await daemon.loadOwnerStart(after);
		daemon.holds.moveTurn(before.turn, after.turn);
	}
	return done;
}
