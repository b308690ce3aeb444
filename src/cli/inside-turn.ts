/** How a program that `run` started knows its turn: project path and number in its environment, beside the token. */
import type { DaemonClient } from "../daemon/client.js";

export const TOKEN_VARIABLE = "TURNFS_RUN";
export const TURN_VARIABLE = "TURNFS_TURN";
export const PROJECT_VARIABLE = "TURNFS_PROJECT";

/** The project's open turn if we were started by it, else null. */
export async function surroundingTurn(client: DaemonClient, project: string): Promise<number | null> {
	const env = process.env;
	if (env[TOKEN_VARIABLE] === undefined || env[PROJECT_VARIABLE] !== project) return null;
	const { turn } = await client.status();
	return turn === Number(env[TURN_VARIABLE]) ? turn : null;
}
