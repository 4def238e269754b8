import type { IncomingMessage, ServerResponse } from "node:http";
import { Refused } from "../../../job/http.ts";
import { type JsonObject, parseJsonObject } from "../../../library/checkpoint/index.ts";

/** Enough for the facts of a checkpoint. */
const maxJsonBytes = 1 << 20;

/** The content of a request; its length is known before any of it is read. */
export class Content {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #idleMs: number;
  #taken = false;

  /** @param idleMs - longest time between two parts */
  constructor(request: IncomingMessage, response: ServerResponse, idleMs: number) {
    this.#request = request;
    this.#response = response;
    this.#idleMs = idleMs;
  }

  /** Whether all content has arrived. */
  get read(): boolean {
    return this.#taken ? this.#request.complete : this.#lengthHeader === undefined;
  }

  /** Length of the content. @throws {Refused} 411 if it is not given; 415 unless it is `application/octet-stream` */
  get lengthBytes(): number {
    const { "content-type": type, "transfer-encoding": encoding } = this.#request.headers;
    if (type !== "application/octet-stream")
      throw new Refused(415, "expected Content-Type: application/octet-stream");
    const length = this.#lengthHeader;
    if (encoding !== undefined || length === undefined)
      throw new Refused(411, "expected a Content-Length, content not chunked");
    return Number(length);
  }

  /** Yields the bytes as they arrive. Throws if the sender disconnects early or is silent for too long. */
  async *parts(): AsyncGenerator<Uint8Array> {
    this.#taken = true;
    const { socket } = this.#request;
    const silent = () => void socket.destroy();
    socket.setTimeout(this.#idleMs).once("timeout", silent);
    // "Expect: 100-continue" is answered only now, after all checks.
    if (this.#request.headers.expect?.toLowerCase() === "100-continue") this.#response.writeContinue();
    for await (const part of this.#request) yield part as Uint8Array;
    socket.setTimeout(0).off("timeout", silent);
  }

  /**
   * Reads a JSON object; empty without content.
   * @param maxBytes - the longest content that is read. Default: 1 MiB
   * @throws {Refused} 413, 415
   * @throws {TroupeError} `JSON_INVALID`
   */
  async json(maxBytes = maxJsonBytes): Promise<JsonObject> {
    const { "content-type": type, "transfer-encoding": encoding } = this.#request.headers;
    if (encoding === undefined && Number(this.#lengthHeader ?? 0) === 0) return {};
    if (type !== "application/json") throw new Refused(415, "expected Content-Type: application/json");
    if (Number(this.#lengthHeader ?? 0) > maxBytes) throw tooLong(maxBytes);
    const parts: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const part of this.parts()) {
      sizeBytes += part.length;
      if (sizeBytes > maxBytes) throw tooLong(maxBytes);
      parts.push(part);
    }
    return parseJsonObject(textOf(Buffer.concat(parts)), "the request's content");
  }

  get #lengthHeader(): string | undefined {
    return this.#request.headers["content-length"];
  }
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refused(400, "expected content in UTF-8");
  }
}

function tooLong(maxBytes: number): Refused {
  return new Refused(413, `expected at most ${maxBytes} bytes of JSON`);
}
