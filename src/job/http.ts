import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Callers, callerLimits, type Gate } from "../runtime/access/index.ts";
import { toJson } from "./events/index.ts";

/** The reason why a request gets another answer than the one that it asked for. */
export class Refused extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "Refused";
    this.status = status;
    this.headers = headers;
  }
}

/** A request that the gate has let through, and its answer. */
export interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path that was asked for, without its query, as it was sent. */
  readonly path: string;
  /** Makes sure that the caller knows the token. @throws {Refused} 401 */
  authenticate(): void;
  /** Counts the caller's connection no more among those that wait; after {@link authenticate}. */
  admit(): void;
}

/** Options of an {@link HttpServer}. */
export interface HttpOptions extends Pick<ServerOptions, "requestTimeout" | "maxHeaderSize"> {
  readonly gate: Gate;
  /** Headers of every answer, besides or instead of those that forbid browsers to keep, frame or guess it. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the process ends only after the server is closed. Default: false. */
  readonly keepsProcess?: boolean;
  /** Whether a request to upgrade is refused; else it is answered in plain HTTP. Default: false. */
  readonly refusesUpgrades?: boolean;
  /** Answers a request that was refused, by a {@link Refused}, or failed. Default: in one line of text. */
  readonly fail?: (response: ServerResponse, error: unknown) => void;
}

const guardingHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

/**
 * An HTTP/1.1 server: every one of Troupe's is one. It counts callers from their first byte on ({@link Callers}), sends each request
 * through its gate, and tells refused callers why.
 */
export class HttpServer {
  /** Node's own server, which listens. */
  readonly server: Server;
  readonly #options: HttpOptions;
  readonly #callers: Callers;

  private constructor(server: Server, options: HttpOptions) {
    this.server = server;
    this.#options = options;
    this.#callers = new Callers(server);
    server.on("connect", refuseSocket);
    if (options.refusesUpgrades) server.on("upgrade", refuseSocket);
    if (options.keepsProcess) return;
    server.on("connection", (socket: Socket) => socket.unref());
    server.unref();
  }

  /** Makes a server that does not listen yet. */
  static async open(options: HttpOptions): Promise<HttpServer> {
    // Loaded where it serves: every actor's thread imports this module with the job.
    const { createServer } = await import("node:http");
    const { requestTimeout = 10_000, maxHeaderSize = callerLimits.maxHeaderSize } = options;
    return new HttpServer(createServer({ ...callerLimits, maxHeaderSize, requestTimeout }), options);
  }

  /** Answers requests from now on by `handler`, which may throw a {@link Refused}. */
  serve(handler: (call: Call) => void | Promise<void>): void {
    const { gate, headers, fail = failInWords } = this.#options;
    const answer = async (request: IncomingMessage, response: ServerResponse) => {
      const check = (refusal: ReturnType<Gate["refuse"]>) => {
        if (refusal !== undefined) throw new Refused(refusal.status, refusal.reason, refusal.headers);
      };
      const [path = ""] = (request.url ?? "").split("?");
      const authenticate = () => check(gate.refuseUnauthenticated(request));
      const admit = () => this.#callers.admit(request.socket);
      for (const [name, value] of Object.entries({ ...guardingHeaders, ...headers }))
        response.setHeader(name, value);
      try {
        check(gate.refuse(request));
        await handler({ request, response, path, authenticate, admit });
      } catch (error) {
        fail(response, error);
      }
    };
    // A caller that asks whether to send its content is told so by the handler, once everything else was found good.
    for (const event of ["request", "checkContinue"])
      this.server.on(event, (...call: Parameters<typeof answer>) => void answer(...call));
  }

  /** @returns the port that it listens on. @throws what `refused` makes of the system's error */
  listen(host: string, port: number, refused: (cause: NodeJS.ErrnoException) => Error): Promise<number> {
    return new Promise((resolve, reject) => {
      const failed = (cause: Error) => reject(refused(cause));
      this.server.once("error", failed).listen(port, host, () => {
        this.server.off("error", failed);
        resolve((this.server.address() as AddressInfo).port);
      });
    });
  }

  /** Closes the port and ends every connection. @param graceMs - for answers that are being ended */
  async close(graceMs = 0): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const force = setTimeout(() => this.server.closeAllConnections(), graceMs);
    if (graceMs === 0) this.server.closeAllConnections();
    await closed;
    clearTimeout(force);
  }
}

/** Sends the content of an answer, or of HEAD its headers alone. */
export function reply({ request, response }: Call, contentType: string, content: string | Uint8Array): void {
  const headers = { "content-type": contentType, "content-length": Buffer.byteLength(content) };
  response.writeHead(200, headers).end(request.method === "HEAD" ? undefined : content);
}

/** Resolves when more of an answer can be written, also when nobody will read it. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

/** Options of {@link SentEvents}. */
export interface SentEventsOptions {
  /** What the reader may leave unread before it is behind. Default: 0, what the system's own buffers hold. */
  readonly maxUnreadBytes?: number;
  /** Called when a reader that was behind has read everything that it was sent. */
  readonly onCaughtUp?: () => void;
  /** Called when a reader that has read nothing for three beats is hung up on. */
  readonly onGivenUp?: () => void;
}

const beatMs = 10_000;
const maxSilentBeats = 3;

/**
 * An answer of server-sent events. Sending never waits. A comment every ten seconds keeps the connection open through proxies; a reader
 * that is behind and reads nothing for three of these beats is hung up on.
 */
export class SentEvents {
  readonly #response: ServerResponse;
  readonly #maxUnreadBytes: number;
  #isBehind = false;
  #numSilentBeats = 0;

  /** @param response - not yet begun */
  constructor(response: ServerResponse, options: SentEventsOptions = {}) {
    const { maxUnreadBytes = 0, onCaughtUp, onGivenUp } = options;
    this.#response = response;
    this.#maxUnreadBytes = maxUnreadBytes;
    response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
    response.flushHeaders();
    response.on("drain", () => {
      if (!this.#isBehind) return;
      this.#isBehind = false;
      this.#numSilentBeats = 0;
      onCaughtUp?.();
    });
    const beat = setInterval(() => {
      if (!this.#isBehind) this.send(": beat\n\n");
      else if (++this.#numSilentBeats === maxSilentBeats) {
        response.destroy();
        onGivenUp?.();
      }
    }, beatMs).unref();
    response.once("close", () => clearInterval(beat));
  }

  /** Whether the reader has more unread than it may. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** @param text - of {@link eventText}. @returns whether it was sent: not to a reader that is behind */
  send(text: string): boolean {
    if (this.#isBehind) return false;
    // What has never left can be above the bound: only then is there a "drain" to wait for.
    if (!this.#response.write(text) && this.#response.writableLength > this.#maxUnreadBytes)
      this.#isBehind = true;
    return true;
  }

  /** Ends the answer, of a reader that is behind at once. */
  end(): void {
    if (this.#isBehind) this.#response.destroy();
    else this.#response.end();
  }
}

/** @returns one server-sent event. JSON has no line breaks, so that its data is one line */
export function eventText(event: string, data: object, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${toJson(data)}\n\n`;
}

function failInWords(response: ServerResponse, error: unknown): void {
  const refused = error instanceof Refused ? error : failure(error);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // What a refused request still sends is not read.
  const headers = { "content-type": "text/plain; charset=utf-8", connection: "close", ...refused.headers };
  response.writeHead(refused.status, headers).end(`${refused.message}\n`);
}

/** @returns what the caller hears of an error that is not its own; this process's output has it all */
export function failure(error: unknown): Refused {
  process.emitWarning(error instanceof Error ? error : String(error));
  return new Refused(500, "the service failed; its own output says how");
}

function refuseSocket(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}
