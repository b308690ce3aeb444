import type { FastifyInstance } from "fastify";
import { TurnfsError } from "../../errors.js";
import { summarizeTurn } from "../../history/log.js";
import { readMounts } from "../../project/mount-table.js";
import { findUnprotectedMounts } from "../../project/sub-mounts.js";
import { measureStore } from "../../store/layout.js";
import type { ProblemJson, StatusResponse } from "../api.js";
import type { ProjectDaemon } from "../project-daemon.js";

export function registerStatus(app: FastifyInstance, daemon: ProjectDaemon): void {
	app.get("/status", () => daemon.serial.run(() => readStatus(daemon)));
}

async function readStatus(daemon: ProjectDaemon): Promise<StatusResponse> {
	const { mount, store, folders } = daemon;
	const behind = mount === null ? [] : await daemon.refreshBehind();
	const open = await daemon.openTurn();
	const changes = open === null ? null : (await summarizeTurn(store, open, await daemon.lookAtCurrent())).counts;
	return {
		project: folders.project,
		mounted: mount !== null,
		mountpoint: mount?.mountpoint ?? null,
		io: mount === null ? null : (await mount.control.status()).io,
		turn: open?.turn ?? null,
		changes,
		pids: { keeper: mount?.keeperPid ?? null, engine: mount?.enginePid ?? null, daemon: process.pid },
		store: {
			path: folders.store,
			bytes: measureStore(folders.storePath),
			turns: await store.countTurns(),
		},
		holders: mount === null ? [] : daemon.holds.list(mount.keeperPid),
		behind,
		problems: [...daemon.problems.list, ...(mount === null ? [] : describeSubMounts(mount.mountpoint))],
	};
}

function describeSubMounts(mountpoint: string): ProblemJson[] {
	return findUnprotectedMounts(mountpoint, readMounts()).map(({ at: path, type }) => {
		const { code, message, hint } = new TurnfsError("TURNFS_SUBMOUNT", { path, type });
		return { code, message, hint };
	});
}
