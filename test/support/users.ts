/** Ordinary users for tests. fusermount3 wants one that /etc/passwd knows; scripts/check brings one where there is none. */
import { readFileSync, statSync } from "node:fs";
import type { UserIds } from "./commands.js";

export const root: UserIds = { uid: 0, gid: 0 };

/** Somebody else: owns files, starts plain processes, mounts nothing. */
export const stranger: UserIds = { uid: 54_321, gid: 54_321 };

/** @throws when no ordinary user is known or /dev/fuse is closed to them */
export function ordinaryUser(): UserIds {
	for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
		const [name, , uid, gid] = line.split(":");
		const ids = { uid: Number(uid), gid: Number(gid) };
		if (name && ids.uid >= 1_000 && ids.uid < 60_000 && ids.gid > 0) {
			requireOpenFuseDevice();
			return ids;
		}
	}
	throw new Error("no ordinary user in /etc/passwd: start the tests with scripts/check, which brings one");
}

function requireOpenFuseDevice(): void {
	if ((statSync("/dev/fuse").mode & 0o006) !== 0o006) {
		throw new Error("/dev/fuse is closed to ordinary users: start the tests with scripts/check, which opens one");
	}
}
