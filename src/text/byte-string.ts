/**
 * Names and paths are bytes, not text. Inside turnfs a *byte string* holds them: each char is one byte (latin1). Here is
 * the way in from and out to what people and JSON see.
 */
import type { ByteString } from "../store/records.js";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of ordinary text (a path from the command line). */
export function toByteString(text: string): ByteString {
	return Buffer.from(text, "utf8").toString("latin1");
}

/** For display: UTF-8 where it is UTF-8, else with replacement characters. */
export function showBytes(bytes: ByteString): string {
	return Buffer.from(bytes, "latin1").toString("utf8");
}

/** True when the bytes are UTF-8, so that `showBytes` loses nothing. */
export function isUtf8(bytes: ByteString): boolean {
	try {
		decoder.decode(Buffer.from(bytes, "latin1"));
		return true;
	} catch {
		return false;
	}
}

/** A path for JSON: as text, and when it is not UTF-8 also exactly, as base64 in `pathBytes`. */
export function pathToJson(path: ByteString): { path: string; pathBytes?: string } {
	if (isUtf8(path)) return { path: showBytes(path) };
	return { path: showBytes(path), pathBytes: Buffer.from(path, "latin1").toString("base64") };
}

/** Joins a directory's path ("" is the project folder) and a name. */
export function joinPath(dir: ByteString, name: ByteString): ByteString {
	return dir === "" ? name : `${dir}/${name}`;
}
