import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import {
	type Answer,
	ChannelError,
	decodeValue,
	EngineError,
	encodeRequest,
	encodeValue,
	LineClient,
	parseAnswer,
} from "../../src/engine/line-protocol.js";

describe("the codec", () => {
	it("carries every byte", () => {
		const all = String.fromCharCode(...Array.from({ length: 256 }, (_, i) => i));
		const encoded = encodeValue(all);
		expect(encoded).toMatch(/^[A-Za-z0-9._/\-:,+%]+$/);
		expect(decodeValue(encoded)).toBe(all);
	});

	it("writes requests as the protocol page shows them", () => {
		expect(encodeRequest(7, "advance", { kind: "turn", lane: 3, owner: undefined, meta: '{"label"' })).toBe(
			"7 advance kind=turn lane=3 meta=%7B%22label%22\n",
		);
		expect(encodeRequest(1, "attrs", { rx: ["user.a", "user.b"], mtime: 12n })).toBe(
			"1 attrs rx=user.a rx=user.b mtime=12\n",
		);
	});

	it("refuses keys, verbs and values that would break a line", () => {
		expect(() => encodeRequest(1, "a b", {})).toThrow(TypeError);
		expect(() => encodeRequest(1, "stat", { "a=b": 1 })).toThrow(TypeError);
		expect(() => encodeValue("€")).toThrow(TypeError);
	});

	it("reads answers, also empty ones and repeated keys", () => {
		const { id, result } = parseAnswer("12 ok n=a%20b n=c empty= size=18446744073709551615");
		expect(id).toBe(12);
		const answer = result as Answer;
		expect(answer.all("n")).toEqual(["a b", "c"]);
		expect(answer.text("empty")).toBe("");
		expect(answer.integer("size")).toBe(18446744073709551615n);
		expect(() => answer.text("nothing")).toThrow(ChannelError);
	});

	it("reads errors", () => {
		const error = parseAnswer("8 err errno=2 name=ENOENT where=renameat2").result as EngineError;
		expect(error).toBeInstanceOf(EngineError);
		expect([error.errno, error.name, error.code, error.where]).toEqual([2, "ENOENT", "ENOENT", "renameat2"]);
	});

	it("refuses what is no answer", () => {
		for (const line of ["", "x ok", "1 maybe", "1 ok word", "1 ok a=%4", "1 ok a=%zz"]) {
			expect(() => parseAnswer(line), line).toThrow(ChannelError);
		}
	});
});

describe("the client", () => {
	function pair() {
		const fromEngine = new PassThrough();
		const toEngine = new PassThrough();
		const client = new LineClient(fromEngine, toEngine);
		return { fromEngine, toEngine, client };
	}

	it("hands each request its answer, however the bytes arrive", async () => {
		const { fromEngine, toEngine, client } = pair();
		const one = client.request("stat", { path: "a" });
		const two = client.request("stat", { path: "b" });
		expect(client.pending).toBe(2);
		expect(toEngine.read().toString()).toBe("1 stat path=a\n2 stat path=b\n");
		fromEngine.write("1 ok mo");
		fromEngine.write("de=33188\n2 err errno=2 name=ENOENT where=fstatat\n");
		expect((await one).number("mode")).toBe(33188);
		await expect(two).rejects.toMatchObject({ code: "ENOENT" });
		expect(client.pending).toBe(0);
	});

	it("rejects what is under way and everything later when the engine goes", async () => {
		const { fromEngine, client } = pair();
		const one = client.request("hello");
		fromEngine.end();
		await expect(one).rejects.toBeInstanceOf(ChannelError);
		await expect(client.request("hello")).rejects.toBeInstanceOf(ChannelError);
	});

	it("gives up on an answer that is not due", async () => {
		const { fromEngine, client } = pair();
		const one = client.request("hello");
		fromEngine.write("5 ok\n");
		await expect(one).rejects.toThrow(/answer 5 where 1 was due/);
	});
});
