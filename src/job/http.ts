import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Callers, callerLimits, type Gate } from "../runtime/access/index.ts";
import { toJson } from "./events/index.ts";

/** Why a request is refused: status, text and headers of its answer. */
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

/** A request that has passed the gate, and its answer. */
export interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The requested path without its query, undecoded. */
  readonly path: string;
  /** Checks the caller's token. @throws {Refused} 401 */
  authenticate(): void;
  /** Stops counting the caller's connection as unauthenticated; call it after {@link authenticate}. */
  admit(): void;
}

/** Options of an {@link HttpServer}. */
export interface HttpOptions extends Pick<ServerOptions, "requestTimeout" | "maxHeaderSize"> {
  readonly gate: Gate;
  /** Headers of every answer; they add to or replace those that forbid browsers to store, frame or sniff it. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether an open server keeps the process running. Default: false. */
  readonly keepsProcess?: boolean;
  /** Whether requests to upgrade are refused; if not, they get a plain HTTP answer. Default: false. */
  readonly refusesUpgrades?: boolean;
  /** Answers a request that was refused by a `Refused` or failed. Default: one line of text. */
  readonly fail?: (response: ServerResponse, error: unknown) => void;
}

const guardingHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

/**
 * An HTTP/1.1 server, the base of all of Troupe's. It counts callers from their first byte ({@link Callers}), passes each request
 * through its gate, and answers refused ones with the reason.
 */
export class HttpServer {
  /** Node's server. */
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

  /** Creates a server that does not listen yet. */
  static async open(options: HttpOptions): Promise<HttpServer> {
    // Loaded only when a server opens: every actor's thread imports this module with the job.
    const { createServer } = await import("node:http");
    const { requestTimeout = 10_000, maxHeaderSize = callerLimits.maxHeaderSize } = options;
    return new HttpServer(createServer({ ...callerLimits, maxHeaderSize, requestTimeout }), options);
  }

  /** Sets the handler of requests, which may throw a `Refused`. */
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
    // "Expect: 100-continue": the handler itself answers it, after all checks.
    for (const event of ["request", "checkContinue"])
      this.server.on(event, (...call: Parameters<typeof answer>) => void answer(...call));
  }

  /** Starts to listen. @returns the port @throws the error that `refused` makes of the system's */
  listen(host: string, port: number, refused: (cause: NodeJS.ErrnoException) => Error): Promise<number> {
    return new Promise((resolve, reject) => {
      const failed = (cause: Error) => reject(refused(cause));
      const listening = () => {
        this.server.off("error", failed);
        resolve((this.server.address() as AddressInfo).port);
      };
      try {
        this.server.once("error", failed).listen(port, host, listening);
      } catch (cause) {
        // Node throws at once for a number that is no port.
        failed(cause as Error);
      }
    });
  }

  /** Closes the port and all connections. @param graceMs - time for answers that are ending */
  async close(graceMs = 0): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const force = setTimeout(() => this.server.closeAllConnections(), graceMs);
    if (graceMs === 0) this.server.closeAllConnections();
    await closed;
    clearTimeout(force);
  }
}

/** Sends an answer's content; for HEAD only its headers. */
export function reply({ request, response }: Call, contentType: string, content: string | Uint8Array): void {
  const headers = { "content-type": contentType, "content-length": Buffer.byteLength(content) };
  response.writeHead(200, headers).end(request.method === "HEAD" ? undefined : content);
}

/** Resolves when more of an answer can be written, or its connection is closed. */
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
  /** Unread bytes above which the reader is behind. Default: 0, which leaves only the system's buffers. */
  readonly maxUnreadBytes?: number;
  /** Called when a reader that was behind has caught up. */
  readonly onCaughtUp?: () => void;
  /** Called when a reader is disconnected because it read nothing for three beats. */
  readonly onGivenUp?: () => void;
}

const beatMs = 10_000;
const maxSilentBeats = 3;

/**
 * An answer of server-sent events. Sending never waits. A comment every ten seconds keeps the connection open through proxies; a
 * reader that is behind and reads nothing for three of these beats is disconnected.
 */
export class SentEvents {
  readonly #response: ServerResponse;
  readonly #maxUnreadBytes: number;
  #isBehind = false;
  #numSilentBeats = 0;

  /** @param response - not started */
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

  /** Whether the reader has more unread bytes than allowed. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** @param text - from `eventText` @returns whether it was sent; a reader that is behind gets nothing */
  send(text: string): boolean {
    if (this.#isBehind) return false;
    // "drain", which ends this, follows only if `write` returned false, however much is unsent.
    if (!this.#response.write(text) && this.#response.writableLength > this.#maxUnreadBytes)
      this.#isBehind = true;
    return true;
  }

  /** Ends the answer; at once if the reader is behind. */
  end(): void {
    if (this.#isBehind) this.#response.destroy();
    else this.#response.end();
  }
}

/** @returns one server-sent event; JSON has no line breaks, so its data is one line */
export function eventText(event: string, data: object, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${toJson(data)}\n\n`;
}

function failInWords(response: ServerResponse, error: unknown): void {
  const refused = error instanceof Refused ? error : failure(error);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // Close the connection: the rest of a refused request is not read.
  const headers = { "content-type": "text/plain; charset=utf-8", connection: "close", ...refused.headers };
  response.writeHead(refused.status, headers).end(`${refused.message}\n`);
}

/** @returns the caller's answer to an internal error; the details are only in this process's output */
export function failure(error: unknown): Refused {
  process.emitWarning(error instanceof Error ? error : String(error));
  return new Refused(500, "the service failed; its own output says how");
}

function refuseSocket(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}
