/**
 * A project and its engine in a few lines: a tree in memory whose changes leave the records that the design's capture table
 * says. Plans can be executed on it, so a test's oracle is the tree itself as it was when the turn began.
 *
 * Chunks are 4 bytes, files of up to 8 bytes are captured whole; "." in a file's bytes is a hole.
 */
import { type FileStat, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from "../../src/engine/fsop.js";
import { History } from "../../src/rewind/history.js";
import { planRewind } from "../../src/rewind/plan.js";
import { collectTargets } from "../../src/rewind/target.js";
import {
	entryKey,
	type Plan,
	type Present,
	type SeenObject,
	type Selection,
	type SpanPost,
	type Step,
	type StepPlace,
	type Targets,
} from "../../src/rewind/types.js";
import type { AttrsRecord, Extent, IndexRecord, Lane, ObjectId } from "../../src/store/records.js";

const CHUNK = 4;
const WHOLE = 8;
const REWIND = 0x8000_0000;

interface Inode {
	mode: number;
	uid: number;
	mtime: bigint;
	xattrs: Record<string, string>;
	bytes: string;
	target: string | null;
}

export class ModelProject {
	readonly records: IndexRecord[] = [];
	readonly posts = new Map<string, SpanPost[]>();
	readonly inodes = new Map<ObjectId, Inode>();
	/** `dir/name` → object */
	readonly names = new Map<string, ObjectId>();
	/** Place in the store → object. */
	readonly stored = new Map<string, ObjectId>();
	/** Objects that a capture by copy has really removed: preserving was not possible. */
	copyInsteadOfPreserve = false;
	epoch = 1;
	lane: Lane = 0;
	private pack = "";
	private seq = 0n;
	private clock = 1000n;
	private nextObject = 2;
	private attrStamps = new Map<ObjectId, string>();
	private bornStamps = new Map<ObjectId, string>();
	private dataStamps = new Map<string, string>();
	private lastNames = new Map<ObjectId, { dir: ObjectId; name: string }>();
	private lastEntryToucher = new Map<string, string>();

	constructor() {
		this.inodes.set("1", { mode: S_IFDIR | 0o755, uid: 0, mtime: 1n, xattrs: {}, bytes: "", target: null });
	}

	// --- spans ---

	/** Ends the span; what it touched gets its post-states. Returns the first seq of the next. */
	advance(lane: Lane): bigint {
		this.writePosts();
		this.epoch++;
		this.lane = lane;
		return this.seq + 1n;
	}

	private writePosts(): void {
		const keys = new Set<string>();
		for (const record of this.records) {
			if ("epoch" in record && record.epoch === this.epoch) {
				if (record.type === "entry") {
					keys.add(`e/${record.dir}/${record.name}`);
				} else if (record.type === "attrs" || record.type === "data") {
					keys.add(`o/${record.object}`);
				}
			}
		}
		for (const key of keys) {
			const object = key.startsWith("o/") ? key.slice(2) : (this.names.get(key.slice(2)) ?? null);
			const exists = object !== null && this.isSomewhere(object);
			const inode = exists && object !== null ? this.inodes.get(object) : undefined;
			const post: SpanPost = {
				epoch: this.epoch,
				seq: this.seq,
				object: exists ? object : null,
				unknown: false,
				mode: inode?.mode ?? 0,
				uid: inode?.uid ?? 0,
				gid: 0,
				size: BigInt(inode?.bytes.length ?? 0),
				mtimeNs: inode?.mtime ?? 0n,
				ctimeNs: 0n,
				path: "",
				xattrs: "",
				stored: false,
			};
			const list = this.posts.get(key) ?? [];
			list.push(post);
			this.posts.set(key, list);
		}
	}

	private isSomewhere(object: ObjectId): boolean {
		return object === "1" || [...this.names.values(), ...this.stored.values()].includes(object);
	}

	// --- operations of programs; `as` is whose touch it is ---

	create(path: string, bytes = "", as: Lane = this.lane): ObjectId {
		return this.add(path, S_IFREG | 0o644, bytes, null, as);
	}

	mkdir(path: string, as: Lane = this.lane): ObjectId {
		return this.add(path, S_IFDIR | 0o755, "", null, as);
	}

	symlink(path: string, target: string, as: Lane = this.lane): ObjectId {
		return this.add(path, S_IFLNK | 0o777, "", target, as);
	}

	link(from: string, to: string, as: Lane = this.lane): void {
		const object = this.at(from);
		const [dir, name] = this.split(to);
		this.touchEntry(dir, name, as);
		this.put(dir, name, object);
		this.inodes.get(object);
	}

	unlink(path: string, as: Lane = this.lane): void {
		const [dir, name] = this.split(path);
		const object = this.at(path);
		if (this.kind(object) === S_IFDIR) {
			throw new Error(`${path} is a directory`);
		}
		this.touchEntry(dir, name, as);
		this.removeFile(object, as);
		this.take(dir, name);
	}

	rmdir(path: string, as: Lane = this.lane): void {
		const [dir, name] = this.split(path);
		const object = this.at(path);
		if (this.kind(object) !== S_IFDIR || this.list(object).length > 0) {
			throw new Error(`${path} can't be removed: ${this.list(object).join()}`);
		}
		this.touchEntry(dir, name, as);
		this.touchAttrs(object, as);
		this.take(dir, name);
	}

	rename(from: string, to: string, as: Lane = this.lane): void {
		const object = this.at(from);
		const [dir, name] = this.split(from);
		const [toDir, toName] = this.split(to);
		this.touchEntry(dir, name, as);
		this.touchEntry(toDir, toName, as);
		const victim = this.names.get(`${toDir}/${toName}`);
		if (victim !== undefined) {
			if (this.kind(victim) === S_IFDIR) {
				this.touchAttrs(victim, as);
			} else {
				this.removeFile(victim, as);
			}
		}
		this.take(dir, name);
		this.put(toDir, toName, object);
	}

	exchange(a: string, b: string, as: Lane = this.lane): void {
		const [aDir, aName] = this.split(a);
		const [bDir, bName] = this.split(b);
		const [first, second] = [this.at(a), this.at(b)];
		this.touchEntry(aDir, aName, as);
		this.touchEntry(bDir, bName, as);
		this.put(aDir, aName, second);
		this.put(bDir, bName, first);
	}

	write(path: string, offset: number, bytes: string, as: Lane = this.lane): void {
		this.writeObject(this.at(path), offset, bytes, as);
	}

	/** Through a descriptor that is still open, whatever has become of the name. */
	writeObject(object: ObjectId, offset: number, bytes: string, as: Lane = this.lane): void {
		this.touchData(object, offset, offset + bytes.length, as);
		const inode = this.inode(object);
		const before = inode.bytes.padEnd(offset, ".");
		inode.bytes = before.slice(0, offset) + bytes + before.slice(offset + bytes.length);
		inode.mtime = this.clock++;
	}

	truncate(path: string, size: number, as: Lane = this.lane): void {
		const object = this.at(path);
		const inode = this.inode(object);
		if (size < inode.bytes.length) {
			this.touchData(object, size, inode.bytes.length, as);
		} else {
			this.touchAttrs(object, as);
		}
		inode.bytes = inode.bytes.slice(0, size).padEnd(size, ".");
		inode.mtime = this.clock++;
	}

	chmod(path: string, mode: number, as: Lane = this.lane): void {
		const object = this.at(path);
		this.touchAttrs(object, as);
		const inode = this.inode(object);
		inode.mode = (inode.mode & S_IFMT) | mode;
	}

	touch(path: string, as: Lane = this.lane): void {
		const object = this.at(path);
		this.touchAttrs(object, as);
		this.inode(object).mtime = this.clock++;
	}

	setXattr(path: string, name: string, value: string | null, as: Lane = this.lane): void {
		const object = this.at(path);
		this.touchAttrs(object, as);
		const xattrs = { ...this.inode(object).xattrs };
		if (value === null) {
			delete xattrs[name];
		} else {
			xattrs[name] = value;
		}
		this.inode(object).xattrs = xattrs;
	}

	/** Behind the mount: no record tells of it. */
	outside(change: (project: ModelProject) => void): void {
		const { length } = this.records;
		const kept = this.seq;
		change(this);
		this.records.length = length;
		this.seq = kept;
	}

	// --- what is there ---

	at(path: string): ObjectId {
		let object: ObjectId = "1";
		for (const name of path === "" ? [] : path.split("/")) {
			const next = this.names.get(`${object}/${name}`);
			if (next === undefined) {
				throw new Error(`no ${path}`);
			}
			object = next;
		}
		return object;
	}

	has(path: string): boolean {
		try {
			this.at(path);
			return true;
		} catch {
			return false;
		}
	}

	/** Path → everything about what is there; the object's id stands for the inode number. */
	tree(): Record<string, string> {
		const result: Record<string, string> = {};
		const walk = (object: ObjectId, path: string): void => {
			const { mode, uid, mtime, xattrs, bytes, target } = this.inode(object);
			const what = [object, mode.toString(8), uid, mtime, JSON.stringify(xattrs), bytes, target].join(" ");
			result[path === "" ? "." : path] = what;
			for (const name of this.list(object)) {
				walk(this.names.get(`${object}/${name}`) as ObjectId, path === "" ? name : `${path}/${name}`);
			}
		};
		walk("1", "");
		return result;
	}

	list(dir: ObjectId): string[] {
		return [...this.names.keys()]
			.filter((key) => key.startsWith(`${dir}/`))
			.map((key) => key.slice(dir.length + 1))
			.sort();
	}

	// --- rewinding ---

	plan(from: bigint, selection: Selection, options: { overwrite?: boolean; uid?: number } = {}): Plan {
		const records = this.records.filter((record) => record.seq >= from);
		const history = new History(records, this.posts);
		const targets = collectTargets(records, selection);
		return planRewind({
			targets,
			history,
			selection,
			present: this.present(targets, history),
			overwrite: options.overwrite ?? false,
			uid: options.uid ?? 0,
			staging: "staging/1",
		});
	}

	/** Plans and executes in a span of its own; returns its lane and what the plan was. */
	rewind(
		from: bigint,
		selection: Selection,
		options: { overwrite?: boolean } = {},
	): { plan: Plan; lane: Lane; seq: bigint } {
		const lane = REWIND + this.epoch + 1;
		const seq = this.advance(lane);
		const plan = this.plan(from, selection, options);
		this.execute(plan.steps);
		this.advance(0);
		return { plan, lane, seq };
	}

	execute(steps: readonly Step[]): void {
		for (const step of steps) {
			this.executeOne(step);
		}
	}

	private executeOne(step: Step): void {
		switch (step.do) {
			case "open-up":
				this.chmod(step.at.path, step.mode);
				return;
			case "move":
				this.move(step.from, step.to);
				return;
			case "unlink":
				this.unlink(inMount(step.at));
				return;
			case "rmdir":
				this.rmdir(inMount(step.at));
				return;
			case "link":
				this.link(inMount(step.from), inMount(step.to));
				return;
			case "make": {
				const [dir, name] = this.split(inMount(step.at));
				this.touchEntry(dir, name, this.lane);
				const { mode, target } = step.attrs;
				const bytes = step.data === null ? "" : this.assemble(step.data.pieces, "".padEnd(Number(step.data.size), "."));
				const permissions = (mode & S_IFMT) === S_IFDIR ? 0o700 : 0o600;
				this.inodes.set(step.object, {
					mode: (mode & S_IFMT) | permissions,
					uid: 0,
					mtime: this.clock++,
					xattrs: {},
					bytes,
					target,
				});
				// A new inode that the history is told is the old object.
				this.bornStamps.set(step.object, this.stamp(this.lane));
				this.put(dir, name, step.object);
				return;
			}
			case "bytes": {
				const object = this.reach(step.at);
				const inode = this.inode(object);
				this.touchData(object, 0, Math.max(inode.bytes.length, Number(step.size)), this.lane);
				const size = Number(step.size);
				inode.bytes = this.assemble(step.pieces, inode.bytes.slice(0, size).padEnd(size, "."));
				inode.mtime = this.clock++;
				return;
			}
			case "attrs": {
				const object = this.reach(step.at);
				this.touchAttrs(object, this.lane);
				const inode = this.inode(object);
				inode.mode = (inode.mode & S_IFMT) | (step.want.mode & 0o7777);
				inode.uid = step.want.uid;
				inode.mtime = step.want.mtimeNs;
				inode.xattrs = step.want.xattrs;
			}
		}
	}

	private reach(place: StepPlace): ObjectId {
		return place.root === "mount"
			? this.at(place.path)
			: (this.stored.get(place.path) ?? fail(`nothing at ${place.path}`));
	}

	private move(from: StepPlace, to: StepPlace): void {
		let object: ObjectId;
		if (from.root === "door") {
			object = this.stored.get(from.path) ?? fail(`nothing at ${from.path}`);
			this.stored.delete(from.path);
			this.records.push({ type: "dropped", seq: ++this.seq, object, place: from.path });
		} else {
			const [dir, name] = this.split(from.path);
			object = this.at(from.path);
			this.touchEntry(dir, name, this.lane);
			this.take(dir, name);
		}
		if (to.root === "door") {
			this.stored.set(to.path, object);
			this.records.push({ type: "preserved", seq: ++this.seq, object, place: to.path, how: "renamed" });
			return;
		}
		const [dir, name] = this.split(to.path);
		if (this.names.has(`${dir}/${name}`)) {
			fail(`${to.path} is taken`);
		}
		this.touchEntry(dir, name, this.lane);
		this.put(dir, name, object);
	}

	private assemble(pieces: readonly Extent[], start: string): string {
		let bytes = start;
		for (const piece of pieces) {
			const at = Number(piece.offset);
			const length = Number(piece.length);
			const from = Number(piece.fileOffset);
			const text = piece.kind === "hole" ? "".padEnd(length, ".") : this.pack.slice(from, from + length);
			bytes = bytes.slice(0, at) + text + bytes.slice(at + length);
		}
		return bytes;
	}

	/**
	 * What a look at the present finds: names that targets or records are about, and the last known name of each object, or
	 * any when it has none of these. A further name of a file is not met.
	 */
	private present(targets: Targets, history: History): Present {
		const objects = new Map<ObjectId, SeenObject>();
		const entries: Present["entries"] = new Map();
		const meet = (object: ObjectId): SeenObject => {
			let seen = objects.get(object);
			if (seen === undefined) {
				const stored = [...this.stored].filter(([, one]) => one === object).map(([place]) => ({ place, recent: true }));
				seen = { object, stat: this.stat(object), names: [], stored };
				objects.set(object, seen);
			}
			return seen;
		};
		const meetName = (dir: ObjectId, name: string): void => {
			const object = this.names.get(`${dir}/${name}`);
			const seen = object === undefined ? undefined : meet(object);
			if (seen?.names.some((known) => known.dir === dir && known.name === name) === false) {
				seen.names.push({ dir, name });
				entries.set(entryKey(dir, name), { dir, name, object: seen.object });
			}
		};
		const meetLast = (object: ObjectId): void => {
			const last = this.lastNames.get(object);
			if (last !== undefined && this.names.get(`${last.dir}/${last.name}`) === object) {
				meetName(last.dir, last.name);
				meetLast(last.dir);
			}
		};
		const look = ({ dir, name }: { dir: ObjectId; name: string }): void => {
			meetLast(dir);
			const object = this.names.get(`${dir}/${name}`) ?? null;
			entries.set(entryKey(dir, name), { dir, name, object });
			meetName(dir, name);
		};
		meet("1");
		const lastNames: Present["lastNames"] = new Map();
		const about = new Set([...targets.attrs.keys(), ...targets.data.keys()]);
		for (const target of targets.entries.values()) {
			look(target);
			history.entriesOf(target.dir).forEach(look);
			if (target.object !== null) {
				about.add(target.object);
			}
		}
		for (const object of about) {
			meetLast(object);
			history.entriesOf(object).forEach(look);
			const last = this.lastNames.get(object);
			const anyName = [...this.names].find(([, one]) => one === object)?.[0];
			if (anyName !== undefined && !objects.has(object)) {
				// As a file handle would lead to it.
				meetName(anyName.slice(0, anyName.indexOf("/")), anyName.slice(anyName.indexOf("/") + 1));
			}
			if ([...this.stored.values()].includes(object)) {
				meet(object);
			} else if (!objects.has(object) && last !== undefined) {
				lastNames.set(object, last);
			}
		}
		for (const [object, target] of targets.data) {
			const seen = objects.get(object);
			if (seen !== undefined) {
				const { bytes } = this.inode(object);
				seen.sameBytes = target.pieces.map((piece) => {
					const there = bytes.slice(Number(piece.offset), Number(piece.offset + piece.length));
					return there === this.assemble([{ ...piece, offset: 0n }], "");
				});
			}
		}
		const lookInto = (dir: ObjectId): void => {
			for (const name of this.kind(dir) === S_IFDIR ? this.list(dir) : []) {
				look({ dir, name });
				lookInto(this.names.get(`${dir}/${name}`) as ObjectId);
			}
		};
		for (const [key, target] of targets.entries) {
			const object = entries.get(key)?.object ?? null;
			if (object !== null && object !== target.object && !about.has(object)) {
				lookInto(object);
			}
		}
		const listings = new Map<ObjectId, string[]>();
		for (const [object] of objects) {
			if (this.kind(object) === S_IFDIR) {
				listings.set(object, this.list(object));
			}
		}
		return { entries, objects, lastNames, listings, closed: [] };
	}

	private stat(object: ObjectId): FileStat {
		const inode = this.inode(object);
		const isLink = (one: ObjectId): boolean => one === object;
		return {
			mode: inode.mode,
			uid: inode.uid,
			gid: 0,
			size: BigInt(inode.bytes.length),
			mtimeNs: inode.mtime,
			ctimeNs: 0n,
			birthNs: 0n,
			ino: BigInt(object),
			dev: 0n,
			nlink: [...this.names.values()].filter(isLink).length + [...this.stored.values()].filter(isLink).length,
			rdev: 0n,
			target: inode.target,
			xattrs: inode.xattrs,
		};
	}

	// --- capture ---

	private add(path: string, mode: number, bytes: string, target: string | null, as: Lane): ObjectId {
		const [dir, name] = this.split(path);
		if (this.names.has(`${dir}/${name}`)) {
			throw new Error(`${path} exists`);
		}
		this.touchEntry(dir, name, as);
		const object = String(this.nextObject++);
		this.inodes.set(object, { mode, uid: 0, mtime: this.clock++, xattrs: {}, bytes, target });
		this.bornStamps.set(object, this.stamp(as));
		this.put(dir, name, object);
		return object;
	}

	private touchEntry(dir: ObjectId, name: string, as: Lane): void {
		this.touchAttrs(dir, as);
		const key = `${dir}/${name}`;
		const last = this.lastEntryToucher.get(key);
		this.lastEntryToucher.set(key, this.stamp(as));
		if (last === this.stamp(as)) {
			return;
		}
		const object = this.names.get(key) ?? null;
		this.records.push({
			type: "entry",
			...this.touchFields(as),
			dir,
			name,
			object,
			mode: object === null ? 0 : this.inode(object).mode,
			parentPath: this.pathOf(dir),
		});
	}

	private touchAttrs(object: ObjectId, as: Lane): void {
		const stamp = this.stamp(as);
		if (this.attrStamps.get(object) === stamp || this.bornStamps.get(object) === stamp) {
			return;
		}
		this.bornStamps.delete(object);
		this.attrStamps.set(object, stamp);
		const inode = this.inode(object);
		const record: AttrsRecord = {
			type: "attrs",
			...this.touchFields(as),
			object,
			mode: inode.mode,
			uid: inode.uid,
			gid: 0,
			size: BigInt(inode.bytes.length),
			mtimeNs: inode.mtime,
			ctimeNs: 0n,
			rdev: 0n,
			nlink: 1,
			xattrs: inode.xattrs,
			target: inode.target,
			path: "",
		};
		this.records.push(record);
	}

	private touchData(object: ObjectId, from: number, to: number, as: Lane): void {
		const stamp = this.stamp(as);
		if (this.bornStamps.get(object) === stamp) {
			return;
		}
		this.touchAttrs(object, as);
		const { bytes } = this.inode(object);
		const size = bytes.length;
		if (size <= WHOLE && !this.dataStamps.has(`${object} ${stamp}`)) {
			this.dataStamps.set(`${object} ${stamp}`, "whole");
			this.capture(object, 0, size, true, as);
			return;
		}
		if (this.dataStamps.get(`${object} ${stamp}`) === "whole") {
			return;
		}
		this.dataStamps.set(`${object} ${stamp}`, "chunks");
		for (let chunk = Math.floor(from / CHUNK); chunk * CHUNK < Math.min(to, size); chunk++) {
			const key = `${object} ${stamp} ${chunk}`;
			if (!this.dataStamps.has(key)) {
				this.dataStamps.set(key, "");
				this.capture(object, chunk * CHUNK, Math.min(size, (chunk + 1) * CHUNK), false, as);
			}
		}
	}

	private capture(object: ObjectId, from: number, to: number, whole: boolean, as: Lane): void {
		const { bytes } = this.inode(object);
		const extents: Extent[] = [];
		for (let at = from; at < to; ) {
			const isHole = bytes[at] === ".";
			let end = at;
			while (end < to && (bytes[end] === ".") === isHole) {
				end++;
			}
			extents.push({
				offset: BigInt(at),
				length: BigInt(end - at),
				kind: isHole ? "hole" : "pack",
				file: 1n,
				fileOffset: BigInt(this.pack.length),
				xxh64: isHole ? "" : "0123456789abcdef",
			});
			this.pack += isHole ? "" : bytes.slice(at, end);
			at = end;
		}
		this.records.push({ type: "data", ...this.touchFields(as), object, whole, size: BigInt(bytes.length), extents });
	}

	private removeFile(object: ObjectId, as: Lane): void {
		const isLast = [...this.names.values()].filter((one) => one === object).length === 1;
		if (this.bornStamps.get(object) === this.stamp(as) && isLast) {
			return;
		}
		if (this.copyInsteadOfPreserve) {
			this.touchAttrs(object, as);
			if (this.kind(object) === S_IFREG) {
				this.touchData(object, 0, this.inode(object).bytes.length, as);
			}
			return;
		}
		const place = `preserved/${object}.${this.seq}`;
		this.stored.set(place, object);
		this.records.push({ type: "preserved", seq: ++this.seq, object, place, how: "renamed" });
	}

	private put(dir: ObjectId, name: string, object: ObjectId): void {
		this.lastNames.set(object, { dir, name });
		this.names.set(`${dir}/${name}`, object);
		this.inode(dir).mtime = this.clock++;
	}

	private take(dir: ObjectId, name: string): void {
		this.names.delete(`${dir}/${name}`);
		this.inode(dir).mtime = this.clock++;
	}

	private touchFields(as: Lane) {
		return { seq: ++this.seq, epoch: this.epoch, lane: as, proc: null, timeNs: this.clock };
	}

	private pathOf(dir: ObjectId): string {
		const last = this.lastNames.get(dir);
		const above = last === undefined ? "" : this.pathOf(last.dir);
		return last === undefined ? "" : above === "" ? last.name : `${above}/${last.name}`;
	}

	private stamp(as: Lane): string {
		return `${this.epoch}:${as}`;
	}

	private kind(object: ObjectId): number {
		return this.inode(object).mode & S_IFMT;
	}

	private inode(object: ObjectId): Inode {
		return this.inodes.get(object) ?? fail(`no object ${object}`);
	}

	private split(path: string): [dir: ObjectId, name: string] {
		const at = path.lastIndexOf("/");
		const dir = this.at(at < 0 ? "" : path.slice(0, at));
		if (this.kind(dir) !== S_IFDIR) {
			throw new Error(`no folder above ${path}`);
		}
		return [dir, path.slice(at + 1)];
	}
}

export function select(...turns: Lane[]): Selection {
	return { lanes: new Map(turns.map((turn) => [turn, 0n])), ignored: new Set(), everybody: false };
}

function inMount(place: StepPlace): string {
	return place.root === "mount" ? place.path : fail(`${place.path} is in the store`);
}

function fail(message: string): never {
	throw new Error(message);
}
