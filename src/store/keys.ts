/** The index's keys (FORMAT.md). Numbers have a fixed width, so that LevelDB's order is journal order. */
import type { ByteString, ObjectId } from "./records.js";

export const META = "meta";
/** The newest span whose post-states are complete. */
export const POST_EPOCH = "post-epoch";

export const epochKey = (epoch: number): string => epoch.toString(16).padStart(8, "0");
export const spanKey = (epoch: number): string => `span/${epochKey(epoch)}`;
export const turnKey = (turn: number): string => `turn/${epochKey(turn)}`;
export const recordKey = (seq: bigint): string => `rec/${seq.toString(16).padStart(16, "0")}`;
/** Records that a turn's left-over processes made outside its spans. */
export const lateKey = (lane: number, seq: bigint): string =>
	`late/${epochKey(lane)}/${seq.toString(16).padStart(16, "0")}`;
export const objectKey = (object: ObjectId): string => `obj/${object}`;
export const aliasKey = (id: ObjectId): string => `alias/${id}`;
export const processKey = (proc: string): string => `proc/${proc}`;
export const blobKey = (xxh64: string, length: bigint, collision: number): string =>
	`blob/${xxh64}-${length}${collision === 0 ? "" : `-${collision}`}`;
export const rewindKey = (epoch: number): string => `rewind/${epochKey(epoch)}`;
export const summaryKey = (turn: number): string => `sum/${epochKey(turn)}`;

/** What tells one inode from every other, a reused number included. */
export interface Identity {
	/** 0: the filesystem of the project folder. */
	dev: bigint;
	ino: bigint;
	birthNs: bigint;
}
const identityText = (of: Identity): string => `${of.dev}:${of.ino}:${of.birthNs}`;
export const identityKey = (of: Identity): string => `ident/${identityText(of)}`;
export const claimKey = (of: Identity): string => `claim/${identityText(of)}`;

/** Names one thing that a span touched. */
export type PostKey = { type: "entry"; dir: ObjectId; name: ByteString } | { type: "object"; object: ObjectId };
export const postKeyText = (key: PostKey): string =>
	key.type === "entry" ? `e/${key.dir}/${key.name}` : `o/${key.object}`;
export const postKey = (epoch: number, key: PostKey): string => `post/${epochKey(epoch)}/${postKeyText(key)}`;

/** The reverse of `postKeyText`; null when it is not one. */
export function parsePostKey(text: string): PostKey | null {
	const object = /^o\/(\d+)$/.exec(text)?.[1];
	if (object !== undefined) return { type: "object", object };
	const entry = /^e\/(\d+)\/([^/]+)$/s.exec(text);
	if (entry?.[1] === undefined || entry[2] === undefined) return null;
	return { type: "entry", dir: entry[1], name: entry[2] };
}
