import type { Server, Socket } from "node:net";

/** Unauthenticated callers at one door at once, and how long each may take for its first request, TLS's handshake included. */
const MOST_UNAUTHENTICATED = 64;
const FIRST_REQUEST_MS = 5_000;

/** A caller that has not been admitted. */
interface Waiting {
  /** The TCP connection itself: under TLS it is there before the handshake, and without one. */
  readonly connection: Socket;
  readonly timer: NodeJS.Timeout;
}

/**
 * Counts the callers of a server from their connection on, before the first byte and before TLS's handshake, until they are admitted. So
 * unauthenticated callers can neither take the descriptors that files need nor keep others out: if there are more than 64, the one that has
 * waited longest is hung up on, and each has five seconds for its first complete request. Every server of Troupe has one.
 */
export class Callers {
  /** In the order in which they came. */
  readonly #waiting = new Map<string | Socket, Waiting>();

  /** @param server - of TCP, TLS, HTTP or a Unix socket; before it listens */
  constructor(server: Server) {
    server.on("connection", (connection: Socket) => this.#take(connection));
    // An HTTP server's: Node itself times the requests that follow on the same connection.
    for (const event of ["request", "checkContinue"])
      server.on(event, ({ socket }: { readonly socket: Socket }) => this.heard(socket));
  }

  /** Stops a caller's clock after its first request. It counts until it is admitted. */
  heard(caller: Socket): void {
    clearTimeout(this.#waiting.get(keyOf(caller))?.timer);
  }

  /** Admits a caller, which then counts no more. */
  admit(caller: Socket): void {
    this.heard(caller);
    this.#waiting.delete(keyOf(caller));
  }

  /** Hangs up on all that have not been admitted. */
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

/** A TLS socket is another object than the connection under it; the far end of both is the same. A Unix socket has no name of its own. */
function keyOf(socket: Socket): string | Socket {
  return socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`;
}

/** How long an HTTP caller may take for the head of a request, and how often that is checked: by default Node checks twice a minute. */
export const callerLimits = {
  maxHeaderSize: 8192,
  headersTimeout: FIRST_REQUEST_MS,
  connectionsCheckingInterval: 1_000,
} as const;
