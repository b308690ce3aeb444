/** `POST /hold`: its connection is the sign of life of a `run` or of a mount in the foreground. */
import type { FastifyInstance } from "fastify";
import { describeCause } from "../../errors.js";
import { holdRequestSchema } from "../api.js";
import type { HoldEntry } from "../holds.js";
import { logLine } from "../log-line.js";
import type { ProjectDaemon } from "../project-daemon.js";
import { endTurn } from "../turns.js";
import { unmountIfFree } from "../watch.js";

export function registerHold(app: FastifyInstance, daemon: ProjectDaemon): void {
	app.post("/hold", (request, reply) => {
		const hold: HoldEntry = holdRequestSchema.parse(request.body ?? {});
		daemon.holds.add(hold);
		request.raw.socket.once("close", () => {
			daemon.holds.delete(hold);
			if (daemon.closing) return;
			daemon.serial
				.run(() => release(daemon, hold))
				.catch((error: unknown) => logLine(`after the end of pid ${hold.pid}: ${describeCause(error)}`));
		});
		reply.hijack();
		reply.raw.writeHead(200, { "content-type": "text/plain" });
		// Headers alone would wait for a first byte.
		reply.raw.write("\n");
	});
}

async function release(daemon: ProjectDaemon, hold: HoldEntry): Promise<void> {
	if (hold.turn !== null && daemon.isMounted()) await endTurn(daemon, hold.turn);
	if (hold.unmount && daemon.mount?.keeperPid === hold.keeper) daemon.unmountWhenIdle = true;
	if (daemon.shouldUnmount) await unmountIfFree(daemon);
}
