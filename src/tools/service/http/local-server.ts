import { rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, TroupeError } from "../../../errors/index.ts";
import { type Call, HttpServer, Refused } from "../../../job/http.ts";
import { Gate, keepToken } from "../../../runtime/access/index.ts";
import { Content } from "./content.ts";
import { replyError } from "./reply.ts";
import { listenOnSocket } from "./unix-socket.ts";

/** Address and limits of a server for other programs of this user. */
export interface ServeOptions {
  /** Path of a Unix socket, which only the user of this process can open. */
  readonly socket?: string | undefined;
  /** Port on the loopback address; 0: any free one. Callers need the token. */
  readonly port?: number | undefined;
  /** File of the token, readable by its owner only; created if missing. Required with a port. */
  readonly tokenFile?: string | undefined;
  /** Longest time between two parts of a request's content. Default: 300,000 ms. */
  readonly idleMs?: number;
}

/** A request of an authenticated caller. */
export interface LocalCall extends Call {
  readonly content: Content;
}

/** The part of a server that its protocol decides. */
export interface Served {
  /** Its name in errors, and their code where it cannot listen. */
  readonly where: string;
  readonly code: ErrorCode;
  /** Methods of any path. */
  readonly methods: readonly string[];
  /** Answers a request. @throws {Refused} */
  route(call: LocalCall): Promise<void>;
  /** Time for answers that are ending when it is closed. Default: 0. */
  readonly graceMs?: number;
  /** Called once it is closed. */
  onClosed?(): void;
}

const host = "127.0.0.1";
/** Limit of authenticated callers. */
const maxClients = 128;
const maxHeaderBytes = 16_384;

/** An HTTP/1.1 server on a Unix socket, or on the loopback address with a token. */
export class LocalServer implements AsyncDisposable {
  /** `http://127.0.0.1:PORT`, or `unix:PATH`. */
  readonly address: string;
  readonly #server: HttpServer;
  readonly #served: Served;

  /** Created by {@link open}. */
  constructor(address: string, server: HttpServer, served: Served) {
    this.address = address;
    this.#server = server;
    this.#served = served;
  }

  /**
   * Listens at one of the two.
   * @throws {TroupeError} `USAGE` unless exactly one is given; the protocol's code if it is taken or forbidden;
   * `ACCESS_TOKEN` for a token file that others can read
   */
  static async open<S>(
    this: new (
      address: string,
      server: HttpServer,
      served: Served,
    ) => S,
    served: Served,
    options: ServeOptions,
  ): Promise<S> {
    const { where, code } = served;
    const { socket, port, tokenFile, idleMs = 300_000 } = options;
    const onSocket = socket !== undefined;
    if (onSocket === (port !== undefined) || onSocket === (tokenFile !== undefined))
      throw new TroupeError("USAGE", {
        where,
        expected: "a socket's path, or a port and a file for its token",
        got: "another choice",
        hint: "a socket needs no token",
      });
    // A Unix socket needs no token: only this user can open it.
    const token = tokenFile === undefined ? undefined : await keepToken(tokenFile);
    const gate = new Gate({ host: onSocket ? undefined : host, token, methods: served.methods });
    const contents = new WeakMap<ServerResponse, Content>();
    const server = await HttpServer.open({
      gate,
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: 0,
      keepsProcess: true,
      fail: (response, error) => replyError(response, error, contents.get(response)?.read ?? false),
    });
    const clients = new Set<Socket>();
    server.serve(async (call) => {
      const { socket } = call.request;
      const content = new Content(call.request, call.response, idleMs);
      contents.set(call.response, content);
      call.authenticate();
      if (!clients.has(socket)) {
        if (clients.size >= maxClients) throw new Refused(503, `${maxClients} clients are connected already`);
        clients.add(socket);
        socket.once("close", () => clients.delete(socket));
        call.admit();
      }
      await served.route({ ...call, content });
    });
    const refuse = (expected: string, got: string, hint: string, cause?: Error) =>
      new TroupeError(code, { where, expected, got, hint, cause });
    if (socket !== undefined) {
      await listenOnSocket(server.server, socket, (got) =>
        refuse(`a free place for a socket at ${socket}`, got, "choose another path"),
      );
      const onClosed = () => {
        rmSync(socket, { force: true });
        served.onClosed?.();
      };
      return new this(`unix:${socket}`, server, { ...served, onClosed });
    }
    const listened = await server.listen(host, port ?? 0, (cause) =>
      refuse(`to listen on port ${port}`, `"${cause.message}"`, "choose another, or 0 for any", cause),
    );
    return new this(`http://${host}:${listened}`, server, served);
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await this.#server.close(this.#served.graceMs ?? 0);
    this.#served.onClosed?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
