import type { FastifyInstance } from "fastify";
import { TurnfsError } from "../../errors.js";
import { listLog } from "../../history/log.js";
import { showTurn } from "../../history/show.js";
import type { Turn } from "../../store/records.js";
import { logQuerySchema, type TurnSpec, turnSpecSchema } from "../api.js";
import type { ProjectDaemon } from "../project-daemon.js";

export function registerHistory(app: FastifyInstance, daemon: ProjectDaemon): void {
	app.get("/log", (request) => {
		const { n, all } = logQuerySchema.parse(request.query);
		return daemon.serial.run(async () => listLog(daemon.store, { n, all, live: await daemon.lookAtCurrent() }));
	});

	app.get("/show/:turn", (request) => {
		const { turn } = request.params as { turn: string };
		const spec = turnSpecSchema.safeParse(/^\d{1,9}$/.test(turn) ? Number(turn) : turn);
		if (!spec.success) throw new TurnfsError("TURNFS_UNKNOWN_TURN", { turn });
		return daemon.serial.run(async () => {
			const live = await daemon.lookAtCurrent();
			const found = await findTurn(daemon, spec.data);
			return showTurn(daemon.store, found, found.state === "open" ? live : []);
		});
	});
}

async function findTurn(daemon: ProjectDaemon, spec: TurnSpec): Promise<Turn> {
	if (spec !== "last") return daemon.store.requireTurn(spec);
	const last = await daemon.store.lastTurn();
	if (last === null) throw new TurnfsError("TURNFS_UNKNOWN_TURN", { turn: "yet" });
	return last;
}
