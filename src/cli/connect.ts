/** From the folder a verb acts in to its project and the project's daemon. */
import { resolve } from "node:path";
import type { BehindJson, MountResponse } from "../daemon/api.js";
import { connectDaemon, type DaemonClient } from "../daemon/client.js";
import { chooseProject, type ProjectPlace, requireProject } from "../project/discover.js";
import { readMounts } from "../project/mount-table.js";
import { refuseProtected } from "../project/refusals.js";
import { chooseStorePlace, writePointer } from "../project/store-place.js";
import { colorsFor, remark, STDERR } from "./output.js";
import { printable } from "./render/names.js";
import { count } from "./render/quantities.js";

export interface Connection {
	place: ProjectPlace;
	client: DaemonClient;
}

/**
 * Opens the project that a folder belongs to; its daemon is started when none runs.
 * @throws TURNFS_NOT_A_PROJECT
 */
export async function openProject(dir: string): Promise<Connection> {
	const place = requireProject(dir);
	return { place, client: await connectDaemon({ project: place.project, store: place.store.path }) };
}

/** As `openProject`, for a verb that makes one call. */
export async function withProject<T>(dir: string, use: (connection: Connection) => Promise<T>): Promise<T> {
	const connection = await openProject(dir);
	try {
		return await use(connection);
	} finally {
		await connection.client.close();
	}
}

export interface MountOptions {
	/** Mount point; by default the project folder itself. */
	at?: string | undefined;
	/** Place of a new store. */
	store?: string | undefined;
	maxPreimageBytes?: number | undefined;
	onCaptureFailure?: "fail" | "skip" | undefined;
	/** Being mounted already is fine (`run`), or a mistake (`mount`). */
	ifNeeded: boolean;
}

export interface Mounted extends Connection {
	mount: MountResponse;
}

/** Finds or starts the project of a folder, refuses what must not be mounted, mounts it. Says which project when it isn't the folder. */
export async function mountProject(dir: string, options: MountOptions): Promise<Mounted> {
	const place = chooseProject(dir);
	if (place.below !== "" && place.by !== "mount") {
		const why = place.by === "git" ? "the top of this git work tree" : "the nearest folder with a turnfs store";
		remark(`turnfs: the project is ${printable(place.project)}, ${why}.`);
	}
	const at = options.at === undefined ? place.project : resolve(dir, options.at);
	const option = options.store === undefined ? null : resolve(dir, options.store);
	let store = place.store?.path;
	let pointer = false;
	if (place.mountpoint === null) {
		refuseProtected(place.project, at, readMounts());
		const chosen = chooseStorePlace(place.project, option);
		store = chosen.path;
		pointer = chosen.kind === "option";
	}
	if (store === undefined) throw new Error(`no store is known for the mounted project ${place.project}`);
	const client = await connectDaemon({ project: place.project, store, create: true });
	try {
		if (pointer) writePointer(place.project, store);
		const mount = await client.mount({
			ifNeeded: options.ifNeeded,
			trace: process.env.TURNFS_TRACE === "1",
			...(options.at === undefined ? {} : { at }),
			...(options.maxPreimageBytes === undefined ? {} : { maxPreimageBytes: options.maxPreimageBytes }),
			...(options.onCaptureFailure === undefined ? {} : { onCaptureFailure: options.onCaptureFailure }),
		});
		return { place, client, mount };
	} catch (error) {
		await client.close();
		throw error;
	}
}

/** Names the processes whose changes are not captured, and what cures it. */
export function warnBehind(behind: BehindJson[]): void {
	if (behind.length === 0) return;
	const colors = colorsFor(STDERR);
	const names = behind.map((p) => `${printable(p.comm)} (pid ${p.pid})`).join(", ");
	const verb = behind.length === 1 ? "stands" : "stand";
	remark(
		`${colors.yellow("turnfs:")} ${count(behind.length, "process", "processes")} ${verb} in the folder under the mount, ` +
			`where changes are not captured: ${names}. \`cd .\` there enters the mount.`,
	);
}
