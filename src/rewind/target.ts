/**
 * What must be, from records alone: for every entry, attributes and bytes that the selected lanes touched, the pre-image of
 * the earliest such touch (design: P3, P4).
 */
import type { DataRecord, Extent, IndexRecord, ObjectId, Touch } from "../store/records.js";
import {
	type DataTarget,
	entryKey,
	FIRST_REWIND_LANE,
	type LostPreimage,
	type Piece,
	type Selection,
	type Targets,
} from "./types.js";

/** True for a touch that the rewind undoes. */
export function isSelected(touch: Touch, selection: Selection): boolean {
	if (selection.everybody) {
		return true;
	}
	const after = selection.lanes.get(touch.lane);
	return after !== undefined && touch.seq > after;
}

/**
 * True for what a rewind or redo did to an object that is in the tree no longer and comes back: it changed the object in place, and
 * the one that undid it let the object go without putting its bytes back. What the turn it undid had done before counts with it,
 * or the object would get that turn's bytes.
 */
function isOfOneComingBack(record: Touch & { type: string; object?: ObjectId | null }, selection: Selection): boolean {
	return (
		(record.type === "attrs" || record.type === "data") &&
		(record.lane >= FIRST_REWIND_LANE || selection.ignored.has(record.lane)) &&
		record.object != null &&
		selection.comingBack?.has(record.object) === true
	);
}

/** True for a touch by somebody whose work must not be lost. */
export function isForeign(touch: Touch, selection: Selection): boolean {
	return !isSelected(touch, selection) && touch.lane < FIRST_REWIND_LANE && !selection.ignored.has(touch.lane);
}

/** @param records in journal order, from the first selected touch on */
export function collectTargets(records: Iterable<IndexRecord>, selection: Selection): Targets {
	const targets: Targets = { entries: new Map(), attrs: new Map(), data: new Map(), lost: [] };
	const bytes = new Map<ObjectId, ByteTarget>();
	const foreignData = new Map<ObjectId, bigint>();
	for (const record of records) {
		if (record.type === "preserved" || record.type === "dropped" || record.type === "moved") {
			continue;
		}
		if (!isSelected(record, selection) && !isOfOneComingBack(record, selection)) {
			if (record.type === "data") {
				foreignData.set(record.object, record.seq);
			}
			continue;
		}
		switch (record.type) {
			case "entry": {
				const key = entryKey(record.dir, record.name);
				if (!targets.entries.has(key)) {
					const { dir, name, object, mode, seq, parentPath } = record;
					targets.entries.set(key, { dir, name, object, mode, seq, parentPath });
				}
				break;
			}
			case "attrs":
				if (!targets.attrs.has(record.object)) {
					targets.attrs.set(record.object, record);
				}
				break;
			case "data": {
				let target = bytes.get(record.object);
				if (target === undefined) {
					target = new ByteTarget(record, sizeBefore(record, targets, foreignData));
					bytes.set(record.object, target);
				}
				target.add(record);
				break;
			}
			case "skipped":
				targets.lost.push(lostPreimage(record));
				break;
		}
	}
	for (const [object, target] of bytes) {
		targets.data.set(object, target.finish(object));
	}
	dropWhatWasLost(targets);
	return targets;
}

/**
 * The size at the first selected touch. An extending truncate touches attributes only, so an earlier attributes record knows
 * better than the data record, unless somebody else changed the bytes between the two.
 */
function sizeBefore(record: DataRecord, targets: Targets, foreignData: Map<ObjectId, bigint>): bigint {
	const attrs = targets.attrs.get(record.object);
	if (attrs === undefined) {
		return record.size;
	}
	const foreignSeq = foreignData.get(record.object);
	return foreignSeq !== undefined && foreignSeq > attrs.seq ? record.size : attrs.size;
}

function lostPreimage(record: Extract<IndexRecord, { type: "skipped" }>): LostPreimage {
	return {
		what: record.what,
		object: record.object,
		key: record.dir === null ? null : entryKey(record.dir, record.name),
		path: record.name,
		reason: record.reason,
		seq: record.seq,
	};
}

/** A pre-image that was lost at the first touch can't be replaced by that of a later touch: it would be the wrong one. */
function dropWhatWasLost(targets: Targets): void {
	for (const lost of targets.lost) {
		if (lost.what === "entry" && lost.key !== null) {
			const target = targets.entries.get(lost.key);
			if (target !== undefined && target.seq > lost.seq) {
				targets.entries.delete(lost.key);
			}
		} else if (lost.what === "attrs" && lost.object !== null) {
			const target = targets.attrs.get(lost.object);
			if (target !== undefined && target.seq > lost.seq) {
				targets.attrs.delete(lost.object);
			}
		} else if (lost.what === "data" && lost.object !== null) {
			const target = targets.data.get(lost.object);
			if (target !== undefined && (target.seq > lost.seq || !target.complete)) {
				targets.data.delete(lost.object);
			}
		}
	}
}

/** The bytes of one object, put together from several captures; for each range the earliest one wins. */
class ByteTarget {
	private readonly pieces: Piece[] = [];
	private readonly seq: bigint;
	private readonly size: bigint;

	constructor(first: DataRecord, size: bigint) {
		this.seq = first.seq;
		this.size = size;
	}

	add(record: DataRecord): void {
		for (const extent of record.extents) {
			this.addExtent(extent);
		}
	}

	finish(object: ObjectId): DataTarget {
		let end = 0n;
		for (const piece of this.pieces) {
			if (piece.offset !== end) {
				break;
			}
			end += piece.length;
		}
		return { object, seq: this.seq, size: this.size, complete: end >= this.size, pieces: this.pieces };
	}

	private addExtent(extent: Extent): void {
		const end = min(extent.offset + extent.length, this.size);
		let at = extent.offset;
		let index = this.firstEndingAfter(at);
		while (at < end) {
			const next = this.pieces[index];
			if (next !== undefined && next.offset <= at) {
				at = next.offset + next.length;
				index++;
				continue;
			}
			const until = next === undefined ? end : min(next.offset, end);
			this.pieces.splice(index, 0, cut(extent, at, until));
			index++;
			at = until;
		}
	}

	private firstEndingAfter(offset: bigint): number {
		let low = 0;
		let high = this.pieces.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			const piece = this.pieces[middle] as Piece;
			if (piece.offset + piece.length <= offset) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		return low;
	}
}

/** Part of an extent; what can be verified is only the whole. */
function cut(extent: Extent, from: bigint, until: bigint): Piece {
	if (from === extent.offset && until === extent.offset + extent.length) {
		return extent;
	}
	const fileOffset = extent.kind === "hole" ? 0n : extent.fileOffset + (from - extent.offset);
	return { ...extent, offset: from, length: until - from, fileOffset, captured: extent };
}

function min(a: bigint, b: bigint): bigint {
	return a < b ? a : b;
}
