/** Which entries and objects a stretch of history touched. */

import { postKeyText } from "./keys.js";
import type { IndexRecord, ObjectId } from "./records.js";
import type { HistoryStore, PostKey } from "./store.js";

export interface Touched {
	entries: Map<string, PostKey & { type: "entry" }>;
	/** Objects with attributes or bytes captured, or moved into the store. */
	objects: Set<ObjectId>;
}

/** @param keep which records count; by default all */
export async function collectTouched(
	store: HistoryStore,
	fromSeq: bigint,
	endSeq: bigint | undefined,
	keep: (record: IndexRecord) => boolean = () => true,
): Promise<Touched> {
	const touched: Touched = { entries: new Map(), objects: new Set() };
	for await (const record of store.records(fromSeq, endSeq)) if (keep(record)) addTouched(touched, record);
	return touched;
}

export function addTouched(touched: Touched, record: IndexRecord): void {
	switch (record.type) {
		case "entry": {
			const key = { type: "entry" as const, dir: record.dir, name: record.name };
			touched.entries.set(postKeyText(key), key);
			return;
		}
		case "attrs":
		case "data":
		case "preserved":
			touched.objects.add(record.object);
			return;
		case "skipped":
			if (record.object !== null) touched.objects.add(record.object);
			if (record.dir !== null && record.name !== "") {
				const key = { type: "entry" as const, dir: record.dir, name: record.name };
				touched.entries.set(postKeyText(key), key);
			}
	}
}
