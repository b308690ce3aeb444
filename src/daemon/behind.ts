/** Processes that stand in the folder under the mount: they entered it before it was mounted, and go on in the plain folder. */
import { fstatSync } from "node:fs";
import type { Fsop } from "../engine/fsop.js";
import { showBytes, toByteString } from "../text/byte-string.js";
import type { BehindJson } from "./api.js";
import type { Folders } from "./folders.js";

export async function findBehind(fsop: Fsop, folders: Folders): Promise<BehindJson[]> {
	const dev = fstatSync(folders.projectFd).dev;
	const answer = await fsop.request("procs", { dev, under: toByteString(folders.project) });
	return answer.all("p").map((text) => {
		const comma = text.indexOf(",");
		return { pid: Number(text.slice(0, comma)), comm: showBytes(text.slice(comma + 1)) };
	});
}

/** Processes that stand inside the mount. */
export async function findInside(fsop: Fsop, mountpoint: string): Promise<BehindJson[]> {
	const processes = await fsop.procs({ path: toByteString(mountpoint) });
	return processes.map(({ pid, comm }) => ({ pid, comm: showBytes(comm) }));
}
