import { rm } from "node:fs/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { TroupeError } from "../../../errors/index.ts";
import { Callers, callerLimits, Gate, keepToken } from "../../../runtime/access/index.ts";
import type { CheckpointService } from "../checkpoint-service.ts";
import { Content } from "./content.ts";
import { OpenSaves } from "./open-saves.ts";
import { Refused, replyError } from "./reply.ts";
import { route, servedMethods } from "./routes.ts";
import { listenOnSocket } from "./unix-socket.ts";

/** Where a checkpoint server is reached. */
export interface ServeOptions {
  /** Path of a Unix socket, which only the user of this process can open. */
  readonly socket?: string | undefined;
  /** Port on the loopback address; 0 for any that is free. Who calls it must know the token. */
  readonly port?: number | undefined;
  /** File that keeps the token, readable by its owner alone; made where it is not there. Needed with a port. */
  readonly tokenFile?: string | undefined;
  /** How long a save may be added nothing to before it is given up; 300,000 by default. */
  readonly idleMs?: number;
}

const host = "127.0.0.1";
/** Callers whose request was found good. */
const maxClients = 128;
const maxHeaderBytes = 16_384;

/** Lets other programs hand tensors to a {@link CheckpointService}, over HTTP/1.1. Owns neither the service nor its storage. */
export class CheckpointServer implements AsyncDisposable {
  /** `http://127.0.0.1:PORT`, or `unix:PATH`. */
  readonly address: string;
  readonly #server: Server;
  readonly #saves: OpenSaves;

  readonly #socket: string | undefined;

  private constructor(address: string, server: Server, saves: OpenSaves, socket?: string) {
    this.address = address;
    this.#socket = socket;
    this.#server = server;
    this.#saves = saves;
  }

  /**
   * Listens, on a Unix socket or on the loopback address.
   * @throws {TroupeError} `USAGE` unless it is told one of the two; `CHECKPOINT_SERVE` where that is taken or forbidden;
   * `ACCESS_TOKEN` for a token file that others can read
   */
  static async listen(service: CheckpointService, options: ServeOptions): Promise<CheckpointServer> {
    const { socket, port, tokenFile, idleMs = 300_000 } = options;
    const onSocket = socket !== undefined;
    if (onSocket === (port !== undefined) || onSocket === (tokenFile !== undefined)) throw wrongPlace();
    const gate = tokenFile === undefined ? undefined : await loopbackGate(tokenFile);
    const saves = new OpenSaves(service, idleMs);
    const clients = new Set<Socket>();
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      const content = new Content(request, response, idleMs);
      const admit = () => {
        const { socket } = request;
        if (clients.has(socket)) return;
        if (clients.size >= maxClients) throw new Refused(503, `${maxClients} clients are served already`);
        clients.add(socket);
        socket.once("close", () => clients.delete(socket));
        callers.admit(socket);
      };
      serve({ request, response, content, service, saves }, gate, admit).catch((error: unknown) => {
        replyError(response, error, content.read);
      });
    };
    const { createServer } = await import("node:http");
    const server = createServer(
      { ...callerLimits, maxHeaderSize: maxHeaderBytes, requestTimeout: 0 },
      answer,
    );
    const callers = new Callers(server);
    // Content is asked for only once everything else was found good.
    server.on("checkContinue", answer);
    try {
      if (socket === undefined)
        return new CheckpointServer(await listenOnPort(server, port ?? 0), server, saves);
      await listenOnSocket(server, socket);
      return new CheckpointServer(`unix:${socket}`, server, saves, socket);
    } catch (error) {
      saves.close();
      throw error;
    }
  }

  /** Ends every connection and gives up the saves that were not committed. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
    if (this.#socket !== undefined) await rm(this.#socket, { force: true });
    this.#saves.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** @param admit - lets the caller's connection stand from now on */
async function serve(
  call: Parameters<typeof route>[0],
  gate: Gate | undefined,
  admit: () => void,
): Promise<void> {
  const { request } = call;
  if (gate === undefined) {
    // Browsers reach no Unix socket: what still calls itself a page is none of ours.
    if (request.headers.origin !== undefined) throw new Refused(403, "pages are not served (Origin)");
    if (!servedMethods.includes(request.method ?? ""))
      throw new Refused(405, `only ${servedMethods.join(", ")} are served`);
  }
  const refusal = gate?.refuse(request) ?? gate?.refuseUnauthenticated(request);
  if (refusal !== undefined) throw new Refused(refusal.status, refusal.reason);
  admit();
  await route(call);
}

async function loopbackGate(tokenFile: string): Promise<Gate> {
  return new Gate({ host, token: await keepToken(tokenFile), methods: servedMethods });
}

function listenOnPort(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      reject(
        new TroupeError(
          "CHECKPOINT_SERVE",
          {
            where: "checkpoint serve",
            expected: `to listen on port ${port}`,
            got: `"${cause.message}"`,
            hint: "choose another, or 0 for any",
          },
          { cause },
        ),
      );
    });
    server.listen(port, host, () => {
      resolve(`http://${host}:${(server.address() as AddressInfo).port}`);
    });
  });
}

function wrongPlace(): TroupeError {
  return new TroupeError("USAGE", {
    where: "checkpoint serve",
    expected: "a socket's path, or a port and a file for its token",
    got: "another choice",
    hint: "a socket needs no token",
  });
}
