import type { FastifyInstance } from "fastify";
import { turnBeginRequestSchema, turnEndRequestSchema, turnMarkRequestSchema } from "../api.js";
import type { ProjectDaemon } from "../project-daemon.js";
import { beginTurn, endTurn, markTurn } from "../turns.js";

export function registerTurn(app: FastifyInstance, daemon: ProjectDaemon): void {
	app.post("/turn/begin", (request) => {
		const options = turnBeginRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(() => beginTurn(daemon, options));
	});
	app.post("/turn/mark", (request) => {
		const options = turnMarkRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(() => markTurn(daemon, options));
	});
	app.post("/turn/end", (request) => {
		const { turn } = turnEndRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(() => endTurn(daemon, turn));
	});
}
