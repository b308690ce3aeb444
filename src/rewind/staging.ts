/**
 * The folder for what is on its way from one name to another. It lies in the store, out of everybody's sight. Where the store
 * is on another filesystem nothing can be renamed into it: then it is a folder in the project for as long as the
 * rewind takes.
 */
import { roots } from "../daemon/project-context.js";
import { type FileStat, type Fsop, isAbsent, type Place } from "../engine/fsop.js";
import { EngineError } from "../engine/line-protocol.js";
import type { ByteString } from "../store/records.js";
import type { StepPlace } from "./types.js";

const STAGING = "staging";

/** Each attempt has its own: what an interrupted one left is found by listing them. */
export function stagingFolder(epoch: number): ByteString {
	return `${STAGING}/${epoch}`;
}

/** Folders below the store that earlier attempts have left. */
export async function leftOverStaging(fsop: Fsop): Promise<ByteString[]> {
	try {
		return (await fsop.list({ root: roots.storePlain, path: STAGING })).map((name) => `${STAGING}/${name}`);
	} catch (error) {
		if (isAbsent(error)) {
			return [];
		}
		throw error;
	}
}

export class Staging {
	/** True once it is known which of the two places it is. */
	isProven = false;
	private readonly fsop: Fsop;
	private readonly folder: ByteString;
	private readonly projectFolder: ByteString;
	/** Set when it is in the project: how the project folder was before. */
	private projectStat: FileStat | null = null;

	/** @param folder below the store, as `stagingFolder` names it */
	constructor(fsop: Fsop, folder: ByteString) {
		this.fsop = fsop;
		this.folder = folder;
		this.projectFolder = `.turnfs-${folder.replaceAll("/", "-")}`;
	}

	holds(place: StepPlace): boolean {
		return place.root === "door" && place.path.startsWith(`${this.folder}/`);
	}

	/** @param needed false: nothing will be put there */
	async open(needed: boolean): Promise<void> {
		if (!needed) {
			return;
		}
		const parts = this.folder.split("/");
		for (let count = 1; count <= parts.length; count++) {
			try {
				await this.fsop.mkdir({ root: roots.storePlain, path: parts.slice(0, count).join("/") }, 0o700);
			} catch (error) {
				if (!(error instanceof EngineError) || error.code !== "EEXIST") {
					throw error;
				}
			}
		}
	}

	/** The first move into it finds out where it has to be. */
	async prove(from: Place, to: StepPlace): Promise<void> {
		try {
			await this.fsop.rename(from, { root: roots.store, path: to.path });
		} catch (error) {
			if (!(error instanceof EngineError) || error.code !== "EXDEV") {
				throw error;
			}
			this.projectStat = await this.fsop.stat({ root: roots.project, path: "" });
			await this.fsop.mkdir({ root: roots.mount, path: this.projectFolder }, 0o700);
			await this.fsop.rename(from, this.inProject(to));
		}
		this.isProven = true;
	}

	/** null: not in staging, or it is in the store as the plan has it. */
	translate(place: StepPlace): Place | null {
		return this.projectStat !== null && this.holds(place) ? this.inProject(place) : null;
	}

	/** Everything has been moved out of it again; what couldn't be stays, for the next start to find. */
	async close(): Promise<void> {
		for (const folder of await leftOverStaging(this.fsop)) {
			await this.removeIfEmpty({ root: roots.storePlain, path: folder });
		}
		if (this.projectStat !== null) {
			await this.removeIfEmpty({ root: roots.mount, path: this.projectFolder });
			await this.fsop.attrs({ root: roots.mount, path: "" }, { mtimeNs: this.projectStat.mtimeNs });
		}
	}

	private inProject(place: StepPlace): Place {
		return { root: roots.mount, path: this.projectFolder + place.path.slice(this.folder.length) };
	}

	private async removeIfEmpty(place: Place): Promise<void> {
		try {
			await this.fsop.rmdir(place);
		} catch (error) {
			if (!isAbsent(error) && !(error instanceof EngineError && error.code === "ENOTEMPTY")) {
				throw error;
			}
		}
	}
}
