import type { IncomingMessage, ServerResponse } from "node:http";
import { Refused } from "../../../job/http.ts";
import { type JsonObject, parseJsonObject } from "../../../library/checkpoint/index.ts";

const maxJsonBytes = 1 << 20;

/** A request's content: told how long it is before any of it is read. */
export class Content {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #idleMs: number;
  #taken = false;

  /** @param idleMs - how long may pass between two of its parts */
  constructor(request: IncomingMessage, response: ServerResponse, idleMs: number) {
    this.#request = request;
    this.#response = response;
    this.#idleMs = idleMs;
  }

  /** Whether nothing of it is on its way any more. */
  get read(): boolean {
    return this.#taken ? this.#request.complete : this.#lengthHeader === undefined;
  }

  /**
   * How many bytes it has.
   * @throws {Refused} 411 where that is not told, 415 where it is no `application/octet-stream`
   */
  get lengthBytes(): number {
    const { "content-type": type, "transfer-encoding": encoding } = this.#request.headers;
    if (type !== "application/octet-stream")
      throw new Refused(415, "expected Content-Type: application/octet-stream");
    const length = this.#lengthHeader;
    if (encoding !== undefined || length === undefined)
      throw new Refused(411, "expected a Content-Length, content not chunked");
    return Number(length);
  }

  /** The bytes as they come. Throws when the sender is gone before the last, or silent for too long. */
  async *parts(): AsyncGenerator<Uint8Array> {
    this.#taken = true;
    const { socket } = this.#request;
    const silent = () => void socket.destroy();
    socket.setTimeout(this.#idleMs).once("timeout", silent);
    // A client that asked whether to send at all is told so only now, when everything else was found good.
    if (this.#request.headers.expect?.toLowerCase() === "100-continue") this.#response.writeContinue();
    for await (const part of this.#request) yield part as Uint8Array;
    socket.setTimeout(0).off("timeout", silent);
  }

  /** A small JSON object; empty where there is no content. @throws {Refused} 413, 415 @throws {TroupeError} `JSON_INVALID` */
  async json(): Promise<JsonObject> {
    const { "content-type": type, "transfer-encoding": encoding } = this.#request.headers;
    if (encoding === undefined && Number(this.#lengthHeader ?? 0) === 0) return {};
    if (type !== "application/json") throw new Refused(415, "expected Content-Type: application/json");
    if (Number(this.#lengthHeader ?? 0) > maxJsonBytes) throw tooLong();
    const parts: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const part of this.parts()) {
      sizeBytes += part.length;
      if (sizeBytes > maxJsonBytes) throw tooLong();
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

function tooLong(): Refused {
  return new Refused(413, `expected at most ${maxJsonBytes} bytes of JSON`);
}
