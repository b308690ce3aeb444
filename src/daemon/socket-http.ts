/**
 * HTTP over a Unix socket, by Node's own client: it is loaded in a few milliseconds, and every command pays for what it loads.
 */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";

export interface SocketRequest {
	method: "GET" | "POST";
	path: string;
	/** Sent as JSON; undefined: no body. */
	json?: unknown;
}

export class SocketHttp {
	readonly #socketPath: string;
	readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 });

	constructor(socketPath: string) {
		this.#socketPath = socketPath;
	}

	/** The answer's head; its body is still to be read. There is no time-out: a rewind of a large turn takes as long as it takes. */
	request(call: SocketRequest): Promise<IncomingMessage> {
		const body = call.json === undefined ? undefined : JSON.stringify(call.json);
		return new Promise((resolve, reject) => {
			const sent = httpRequest(
				{
					socketPath: this.#socketPath,
					agent: this.#agent,
					method: call.method,
					path: call.path,
					headers:
						body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
				},
				resolve,
			);
			sent.on("error", reject);
			sent.end(body);
		});
	}

	/** Ends every connection, one that waits for an answer too. */
	close(): void {
		this.#agent.destroy();
	}
}

export async function readText(response: IncomingMessage): Promise<string> {
	const chunks: Buffer[] = [];
	for await (const chunk of response) {
		chunks.push(chunk as Buffer);
	}
	return Buffer.concat(chunks).toString("utf8");
}
