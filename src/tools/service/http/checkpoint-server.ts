import { rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TroupeError } from "../../../errors/index.ts";
import { HttpServer, Refused } from "../../../job/http.ts";
import { Gate, keepToken } from "../../../runtime/access/index.ts";
import type { CheckpointService } from "../checkpoint-service.ts";
import { Content } from "./content.ts";
import { OpenSaves } from "./open-saves.ts";
import { replyError } from "./reply.ts";
import { route, servedMethods } from "./routes.ts";
import { listenOnSocket } from "./unix-socket.ts";

/** Address and limits of a {@link CheckpointServer}. */
export interface ServeOptions {
  /** Path of a Unix socket, which only the user of this process can open. */
  readonly socket?: string | undefined;
  /** Port on the loopback address; 0: any free one. Callers need the token. */
  readonly port?: number | undefined;
  /** File of the token, readable by its owner only; created if missing. Required with a port. */
  readonly tokenFile?: string | undefined;
  /** Idle time after which an open save is dropped. Default: 300,000 ms. */
  readonly idleMs?: number;
}

const host = "127.0.0.1";
/** Limit of authenticated callers. */
const maxClients = 128;
const maxHeaderBytes = 16_384;

/** Lets other programs save tensors with a {@link CheckpointService} over HTTP/1.1. Owns neither the service nor its storage. */
export class CheckpointServer implements AsyncDisposable {
  /** `http://127.0.0.1:PORT`, or `unix:PATH`. */
  readonly address: string;
  readonly #server: HttpServer;
  readonly #saves: OpenSaves;
  readonly #socket: string | undefined;

  private constructor(address: string, server: HttpServer, saves: OpenSaves, socket?: string) {
    this.address = address;
    this.#socket = socket;
    this.#server = server;
    this.#saves = saves;
  }

  /**
   * Listens on a Unix socket or on the loopback address.
   * @throws {TroupeError} `USAGE` unless exactly one of the two is given; `CHECKPOINT_SERVE` if it is taken or forbidden;
   * `ACCESS_TOKEN` for a token file that others can read
   */
  static async listen(service: CheckpointService, options: ServeOptions): Promise<CheckpointServer> {
    const { socket, port, tokenFile, idleMs = 300_000 } = options;
    const onSocket = socket !== undefined;
    if (onSocket === (port !== undefined) || onSocket === (tokenFile !== undefined)) throw wrongPlace();
    // A Unix socket needs no token: only this user can open it.
    const token = tokenFile === undefined ? undefined : await keepToken(tokenFile);
    const gate = new Gate({ host: onSocket ? undefined : host, token, methods: servedMethods });
    const contents = new WeakMap<ServerResponse, Content>();
    const server = await HttpServer.open({
      gate,
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: 0,
      keepsProcess: true,
      fail: (response, error) => replyError(response, error, contents.get(response)?.read ?? false),
    });
    const saves = new OpenSaves(service, idleMs);
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
      await route({ ...call, content, service, saves });
    });
    try {
      if (socket !== undefined) {
        await listenOnSocket(server.server, socket);
        return new CheckpointServer(`unix:${socket}`, server, saves, socket);
      }
      const listened = await server.listen(host, port ?? 0, (cause) => notFree(port ?? 0, cause));
      return new CheckpointServer(`http://${host}:${listened}`, server, saves);
    } catch (error) {
      saves.close();
      throw error;
    }
  }

  /** Closes all connections and drops saves that were not committed. */
  async close(): Promise<void> {
    await this.#server.close();
    if (this.#socket !== undefined) await rm(this.#socket, { force: true });
    this.#saves.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function notFree(port: number, cause: Error): TroupeError {
  const expected = `to listen on port ${port}`;
  const got = `"${cause.message}"`;
  const operands = { where: "checkpoint serve", expected, got, hint: "choose another, or 0 for any" };
  return new TroupeError("CHECKPOINT_SERVE", { ...operands, cause });
}

function wrongPlace(): TroupeError {
  return new TroupeError("USAGE", {
    where: "checkpoint serve",
    expected: "a socket's path, or a port and a file for its token",
    got: "another choice",
    hint: "a socket needs no token",
  });
}
