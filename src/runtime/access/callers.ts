import type { Server, Socket } from "node:net";

/** Limits per server: unauthenticated callers at once, and the time of each for its first request, including a TLS handshake. */
const MOST_UNAUTHENTICATED = 64;
const FIRST_REQUEST_MS = 5_000;

/** A caller that has not been admitted. */
interface Waiting {
  /** The TCP connection; under TLS it exists before the handshake. */
  readonly connection: Socket;
  readonly timer: NodeJS.Timeout;
}

/**
 * Limits the unauthenticated callers of a server, counted from the connection, before the first byte and any TLS handshake. So they
 * can neither use up file descriptors nor lock others out: of more than 64, the one that has waited longest is disconnected, and
 * each has five seconds for its first complete request. Every server of Troupe has one.
 */
export class Callers {
  /** In order of arrival. */
  readonly #waiting = new Map<string | Socket, Waiting>();

  /** @param server - of TCP, TLS, HTTP or a Unix socket; before it listens */
  constructor(server: Server) {
    server.on("connection", (connection: Socket) => this.#take(connection));
    // For HTTP: Node itself limits the time of later requests on the same connection.
    for (const event of ["request", "checkContinue"])
      server.on(event, ({ socket }: { readonly socket: Socket }) => this.heard(socket));
  }

  /** Stops a caller's time limit after its first request; it still counts until it is admitted. */
  heard(caller: Socket): void {
    clearTimeout(this.#waiting.get(keyOf(caller))?.timer);
  }

  /** Admits a caller, which no longer counts. */
  admit(caller: Socket): void {
    this.heard(caller);
    this.#waiting.delete(keyOf(caller));
  }

  /** Disconnects all callers that were not admitted. */
  close(): void {
    for (const { connection } of this.#waiting.values()) connection.destroy();
  }

  #take(connection: Socket): void {
    const key = keyOf(connection);
    const timer = setTimeout(() => connection.destroy(), FIRST_REQUEST_MS).unref();
    const waiting = { connection, timer };
    this.#waiting.set(key, waiting);
    connection.once("close", () => {
      clearTimeout(timer);
      if (this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    });
    if (this.#waiting.size <= MOST_UNAUTHENTICATED) return;
    for (const [longest, { connection: oldest }] of this.#waiting) {
      this.#waiting.delete(longest);
      oldest.destroy();
      break;
    }
  }
}

/** A TLS socket and the connection under it are different objects with the same remote address. Unix sockets have no address. */
function keyOf(socket: Socket): string | Socket {
  return socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`;
}

/** Time for the head of an HTTP request, and the interval of checks, which in Node is 30 s by default. */
export const callerLimits = {
  maxHeaderSize: 8192,
  headersTimeout: FIRST_REQUEST_MS,
  connectionsCheckingInterval: 1_000,
} as const;
