import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";
import { TroupeError } from "../../../errors/index.ts";
import { Callers } from "../../access/index.ts";
import type { Door, Heartbeat } from "../hub/door.ts";
import { refusalFrame, untrusted } from "../hub/greeting.ts";

/** How processes reach each other over a network: plain data. */
export interface Network {
  /** This host's name or number as others reach it; its door is open at this interface only. */
  readonly host: string;
  /** Where the door is; a free one unless said otherwise. */
  readonly port?: number;
  /** Keys with which both ends prove themselves and hide what they say; without them all of it is readable on the way. */
  readonly tls?: Keys;
  /** A sign each 200 ms, lost after nine in silence unless said otherwise: who is gone is noticed within two seconds. */
  readonly heartbeat?: Heartbeat;
}

/** In PEM, as text. */
export interface Keys {
  readonly key: string;
  readonly cert: string;
  /** Who signed the certificates of all hosts. */
  readonly ca: string;
}

/** Codes of OpenSSL, and of Node where it has looked at a certificate. */
const ofTrust = /^(?:ERR_SSL|ERR_TLS|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

/** Loaded where keys are given only: it costs a process 14 to 60 ms, of the 0.7 s in which two begin again. */
const tls = () => process.getBuiltinModule("node:tls");

const usualHeartbeat: Heartbeat = { everyMs: 200, lostAfter: 9 };

/** A TCP socket, for processes of several hosts. */
export class TcpDoor implements Door {
  readonly heartbeat: Heartbeat;
  readonly #network: Network;
  readonly #keys: TlsOptions | undefined;
  readonly #server: Server;
  readonly #callers: Callers;

  constructor(network: Network) {
    this.#network = network;
    this.heartbeat = network.heartbeat ?? usualHeartbeat;
    // If TLS itself rejected a caller, the caller would see only that its connection closed: see `refuse`.
    this.#keys = network.tls && { ...network.tls, requestCert: true, rejectUnauthorized: false };
    this.#server = this.#keys === undefined ? createServer() : tls().createServer(this.#keys);
    this.#callers = new Callers(this.#server);
  }

  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return JSON.stringify([this.#network.host, port]);
  }

  async open(onCall: (socket: Socket, admit: () => void) => void): Promise<void> {
    const { host, port = 0 } = this.#network;
    const take = (socket: Socket) => {
      socket.setNoDelay(true);
      onCall(socket, () => this.#callers.admit(socket));
    };
    if (this.#keys === undefined) this.#server.on("connection", take);
    else
      this.#server.on("secureConnection", (socket: TLSSocket) =>
        isTrusted(socket) ? take(socket) : refuse(socket),
      );
    // An unauthenticated peer is none of this process's business.
    this.#server.on("tlsClientError", () => {});
    try {
      this.#server.listen({ host, port });
      await once(this.#server, "listening");
    } catch (cause) {
      throw cannotListen(host, port, cause as Error);
    }
  }

  call(address: string): Socket {
    const [host, port] = JSON.parse(address) as [string, number];
    // Whom a certificate names does not matter, who signed it does: hosts come and go by number.
    const socket =
      this.#keys === undefined
        ? connect({ host, port })
        : tls().connect({ ...this.#network.tls, host, port, checkServerIdentity: () => undefined });
    socket.setNoDelay(true);
    return socket;
  }

  distrustIn(error: Error): TroupeError | undefined {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (this.#keys === undefined || !ofTrust.test(code)) return undefined;
    // Such a code means that the other end, or TLS, ended the call; any other, that this end does not trust the certificate.
    const isOfCall = code.startsWith("ERR_");
    return untrusted(
      isOfCall ? error.message : `${code} for the certificate of the host that is called`,
      error,
    );
  }

  close(): void {
    this.#server.close();
    this.#callers.close();
  }
}

/**
 * A session that is resumed counts as authorized even if it began without a certificate, so each call is to show its own. Troupe's own calls
 * resume none.
 */
function isTrusted(socket: TLSSocket): boolean {
  return socket.authorized && !socket.isSessionReused() && hasCertificate(socket);
}

function hasCertificate(socket: TLSSocket): boolean {
  return Object.keys(socket.getPeerCertificate()).length > 0;
}

/** Tells a caller why its certificate is not trusted, and reads nothing of what it says. */
function refuse(socket: TLSSocket): void {
  socket.on("error", () => {});
  socket.resume();
  const got = hasCertificate(socket) ? `${socket.authorizationError} for the certificate` : "no certificate";
  socket.end(refusalFrame({ reason: "certificate", got: `${got} of the host that calls` }));
}

function cannotListen(host: string, port: number, cause: Error): TroupeError {
  return new TroupeError(
    "NETWORK_ADDRESS",
    {
      where: "network",
      expected: "an address of this host that is free",
      got: `${host}:${port}, ${cause.message}`,
      hint: "name an interface of this host, and no port or a free one",
    },
    { fields: { host, port }, cause },
  );
}
