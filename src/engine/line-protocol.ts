/**
 * The engine's line protocol (native/control/PROTOCOL.md): its codec, and a client over any pair of byte streams. The control
 * socket and `turnfs-engine fsop` both speak it.
 *
 * Values are byte strings: each char is one byte (latin1).
 */
import type { Readable, Writable } from "node:stream";

export type FieldValue = string | number | bigint | boolean;
/** What a request says. `undefined` leaves the key out; an array repeats it. */
export type RequestFields = Readonly<Record<string, FieldValue | readonly FieldValue[] | undefined>>;

/** A system call that failed inside the engine or fsop. */
export class EngineError extends Error {
	/** The errno's number. */
	readonly errno: number;
	/** The errno's name ("ENOENT"), as in Node's own errors. */
	readonly code: string;
	/** The system call or step that failed. */
	readonly where: string;

	constructor(errno: number, name: string, where: string, detail?: string) {
		super(`${where}: ${name}${detail === undefined ? "" : ` (${detail})`}`);
		this.errno = errno;
		this.name = name;
		this.code = name;
		this.where = where;
	}
}

/** The other side has gone, or said something that is not the protocol. Nothing more can be asked on this channel. */
export class ChannelError extends Error {
	constructor(message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = "ChannelError";
	}
}

const KEY_PATTERN = /^[a-z0-9_.-]+$/;
const VERB_PATTERN = /^[a-z-]+$/;

/** Escapes every byte that is not `A–Z a–z 0–9 . _ / - : , +`. */
export function encodeValue(value: string): string {
	return value.replace(/[^A-Za-z0-9._/\-:,+]/g, (char) => {
		const code = char.charCodeAt(0);
		if (code > 0xff) {
			throw new TypeError("a value of the line protocol must be a byte string");
		}
		return `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
	});
}

/** @throws ChannelError when an escape is cut short or isn't hexadecimal. */
export function decodeValue(text: string): string {
	if (!text.includes("%")) {
		return text;
	}
	return text.replace(/%(.{0,2})/gs, (_, digits: string) => {
		if (!/^[0-9A-F]{2}$/.test(digits)) {
			throw new ChannelError(`bad escape %${digits}`);
		}
		return String.fromCharCode(Number.parseInt(digits, 16));
	});
}

export function encodeRequest(id: number, verb: string, fields: RequestFields): string {
	if (!VERB_PATTERN.test(verb)) {
		throw new TypeError(`bad verb ${JSON.stringify(verb)}`);
	}
	const words = [String(id), verb];
	for (const [key, value] of Object.entries(fields)) {
		if (value === undefined) {
			continue;
		}
		if (!KEY_PATTERN.test(key)) {
			throw new TypeError(`bad key ${JSON.stringify(key)}`);
		}
		for (const one of Array.isArray(value) ? (value as readonly FieldValue[]) : [value as FieldValue]) {
			const text = typeof one === "boolean" ? (one ? "1" : "0") : String(one);
			words.push(`${key}=${encodeValue(text)}`);
		}
	}
	return `${words.join(" ")}\n`;
}

/** The fields of an answer, in the order they were sent. */
export class Answer {
	readonly fields: readonly (readonly [key: string, value: string])[];

	constructor(fields: readonly (readonly [string, string])[]) {
		this.fields = fields;
	}

	optional(key: string): string | undefined {
		return this.fields.find(([name]) => name === key)?.[1];
	}

	/** @throws ChannelError when the answer has no such key. */
	text(key: string): string {
		const value = this.optional(key);
		if (value === undefined) {
			throw new ChannelError(`the answer has no ${key}`);
		}
		return value;
	}

	integer(key: string): bigint {
		const value = this.text(key);
		if (!/^-?\d+$/.test(value)) {
			throw new ChannelError(`${key} is not a number: ${JSON.stringify(value)}`);
		}
		return BigInt(value);
	}

	/** For values that are known to fit: pids, modes, counts. */
	number(key: string): number {
		return Number(this.integer(key));
	}

	flag(key: string): boolean {
		return this.optional(key) === "1";
	}

	all(key: string): string[] {
		return this.fields.filter(([name]) => name === key).map(([, value]) => value);
	}

	/** What follows the prefix → value, e.g. the `x.<hex>` of a stat. */
	withPrefix(prefix: string): [rest: string, value: string][] {
		return this.fields
			.filter(([name]) => name.startsWith(prefix))
			.map(([name, value]) => [name.slice(prefix.length), value]);
	}
}

export interface ParsedAnswer {
	id: number;
	result: Answer | EngineError;
}

/** @throws ChannelError when the line is not an answer. */
export function parseAnswer(line: string): ParsedAnswer {
	const [id, status, ...words] = line.split(" ");
	if (id === undefined || !/^\d+$/.test(id) || (status !== "ok" && status !== "err")) {
		throw new ChannelError(`not an answer: ${JSON.stringify(line.slice(0, 200))}`);
	}
	const answer = new Answer(
		words
			.filter((word) => word !== "")
			.map((word) => {
				const at = word.indexOf("=");
				if (at < 0 || !KEY_PATTERN.test(word.slice(0, at))) {
					throw new ChannelError(`not a field: ${JSON.stringify(word.slice(0, 200))}`);
				}
				return [word.slice(0, at), decodeValue(word.slice(at + 1))] as const;
			}),
	);
	if (status === "ok") {
		return { id: Number(id), result: answer };
	}
	return {
		id: Number(id),
		result: new EngineError(
			answer.number("errno"),
			answer.text("name"),
			answer.text("where"),
			answer.optional("message"),
		),
	};
}

interface Waiting {
	id: number;
	resolve: (answer: Answer) => void;
	reject: (error: Error) => void;
}

/**
 * Sends requests and hands each its answer. Many may be under way: they are executed in the order they were sent, so
 * a caller that needs only that order sends without awaiting.
 */
export class LineClient {
	private readonly waiting: Waiting[] = [];
	private nextId = 1;
	private partial: string[] = [];
	private failure: ChannelError | null = null;
	private readonly input: Readable;
	private readonly output: Writable;

	/** @param input what the other side says @param output what it hears; the same object for a socket */
	constructor(input: Readable, output: Writable) {
		this.input = input;
		this.output = output;
		input.on("data", (chunk: Buffer) => this.receive(chunk.toString("latin1")));
		input.on("end", () => this.fail(new ChannelError("the engine closed the channel")));
		input.on("close", () => this.fail(new ChannelError("the engine closed the channel")));
		for (const stream of new Set<Readable | Writable>([input, output])) {
			stream.on("error", (error: Error) => this.fail(new ChannelError(error.message, { cause: error })));
		}
	}

	/** Why nothing more can be asked, or null. */
	get failed(): ChannelError | null {
		return this.failure;
	}

	/** Requests sent and not yet answered. */
	get pending(): number {
		return this.waiting.length;
	}

	/** @throws EngineError what the call answered; ChannelError when the other side has gone. */
	request(verb: string, fields: RequestFields = {}): Promise<Answer> {
		if (this.failure !== null) {
			return Promise.reject(this.failure);
		}
		const id = this.nextId++;
		const line = encodeRequest(id, verb, fields);
		return new Promise((resolve, reject) => {
			this.waiting.push({ id, resolve, reject });
			this.output.write(line, "latin1");
		});
	}

	/** No more requests; answers under way still arrive. */
	end(): void {
		this.output.end();
	}

	private receive(text: string): void {
		let rest = text;
		for (;;) {
			const at = rest.indexOf("\n");
			if (at < 0) {
				break;
			}
			this.partial.push(rest.slice(0, at));
			const line = this.partial.join("");
			this.partial = [];
			rest = rest.slice(at + 1);
			this.answer(line);
		}
		if (rest !== "") {
			this.partial.push(rest);
		}
	}

	private answer(line: string): void {
		if (this.failure !== null) {
			return;
		}
		try {
			const { id, result } = parseAnswer(line);
			const first = this.waiting[0];
			if (first === undefined || first.id !== id) {
				throw new ChannelError(`answer ${id} where ${first?.id ?? "none"} was due`);
			}
			this.waiting.shift();
			if (result instanceof EngineError) {
				first.reject(result);
			} else {
				first.resolve(result);
			}
		} catch (error) {
			if (!(error instanceof ChannelError)) {
				throw error;
			}
			this.fail(error);
			this.input.destroy();
			this.output.destroy();
		}
	}

	private fail(error: ChannelError): void {
		if (this.failure !== null) {
			return;
		}
		this.failure = error;
		for (const { reject } of this.waiting.splice(0)) {
			reject(error);
		}
	}
}
