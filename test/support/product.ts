/**
 * The built product: what tests start. Copied to where every user can read it when the checkout is closed to others
 * (a folder in /root, for instance).
 */
import { cpSync, existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface Product {
	/** The program that runs the command line. */
	node: string;
	/** dist/cli/main.js */
	cli: string;
	engine: string;
}

const checkout = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const parts = ["dist", "build/Release/turnfs-engine", "node_modules", "package.json"];
let readable: Product | null = null;

/** @param place where a copy may be made */
export function builtProduct(place: string): Product {
	if (readable) return readable;
	const cli = join(checkout, "dist", "cli", "main.js");
	if (!existsSync(cli)) throw new Error("dist/cli/main.js is missing: run `npm run build` first");
	let top = checkout;
	if (!isOpenToAll(cli)) {
		top = join(place, "product");
		for (const part of parts)
			cpSync(join(checkout, part), join(top, part), { recursive: true, verbatimSymlinks: true });
	}
	let node = process.execPath;
	if (!isOpenToAll(node)) {
		node = join(place, "node");
		cpSync(process.execPath, node);
	}
	readable = {
		node,
		cli: join(top, "dist", "cli", "main.js"),
		engine: process.env.TURNFS_ENGINE ?? join(top, "build", "Release", "turnfs-engine"),
	};
	return readable;
}

/** Whether others may pass every folder above, and read the file. */
function isOpenToAll(path: string): boolean {
	if ((statSync(path).mode & 0o004) === 0) return false;
	for (let dir = dirname(path); dir !== "/"; dir = dirname(dir)) {
		if ((statSync(dir).mode & 0o001) === 0) return false;
	}
	return true;
}
