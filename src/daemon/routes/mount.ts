import type { FastifyInstance } from "fastify";
import { TurnfsError } from "../../errors.js";
import { type MountResponse, mountRequestSchema, type UmountResponse, umountRequestSchema } from "../api.js";
import { describeProcesses } from "../holds.js";
import type { ProjectDaemon } from "../project-daemon.js";
import { endTurn } from "../turns.js";

export function registerMount(app: FastifyInstance, daemon: ProjectDaemon): void {
	app.post("/mount", (request) => {
		const options = mountRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(async (): Promise<MountResponse> => {
			const present = options.ifNeeded ? daemon.mount : null;
			const mount =
				present ??
				(await daemon.startMount({
					trace: options.trace,
					...(options.at === undefined ? {} : { at: options.at }),
					...(options.maxPreimageBytes === undefined ? {} : { maxPreimageBytes: options.maxPreimageBytes }),
					...(options.onCaptureFailure === undefined ? {} : { onCaptureFailure: options.onCaptureFailure }),
				}));
			return {
				mountpoint: mount.mountpoint,
				mountedNow: present === null,
				pids: { keeper: mount.keeperPid, engine: mount.enginePid, daemon: process.pid },
				behind: await daemon.refreshBehind(),
			};
		});
	});

	app.post("/umount", (request) => {
		const { lazy, token, keeper } = umountRequestSchema.parse(request.body ?? {});
		return daemon.serial.run(async (): Promise<UmountResponse> => {
			const { mountpoint, keeperPid } = daemon.requireMount();
			if (keeper !== undefined && keeper !== keeperPid) {
				throw new TurnfsError("TURNFS_NOT_MOUNTED", { project: daemon.project });
			}
			const holders = daemon.holds.list(keeperPid, token);
			if (holders.length > 0 && !lazy) {
				throw new TurnfsError("TURNFS_MOUNT_BUSY", { mountpoint, holders: describeProcesses(holders) });
			}
			await endTurn(daemon, null);
			await daemon.stopMount(lazy);
			return { mountpoint };
		});
	});
}
