import { createHash } from "node:crypto";
import type { ByteString } from "./records.js";

/** One short string for a set of xattrs, so that two sets can be compared without keeping both. "" for the empty set. */
export function digestXattrs(xattrs: Record<ByteString, ByteString>): string {
	const names = Object.keys(xattrs).sort();
	if (names.length === 0) return "";
	const hash = createHash("sha256");
	for (const name of names) {
		const value = xattrs[name] ?? "";
		hash.update(`${name.length}:${value.length}:`).update(name, "latin1").update(value, "latin1");
	}
	return hash.digest("hex").slice(0, 16);
}
