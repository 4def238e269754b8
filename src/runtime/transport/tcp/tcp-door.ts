import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";
import { TroupeError } from "../../../errors/index.ts";
import { Callers } from "../../access/index.ts";
import type { Door, Heartbeat } from "../hub/door.ts";
import { refusalFrame, untrusted } from "../hub/greeting.ts";

/** How processes reach each other over a network. Plain data. */
export interface Network {
  /** The name or address by which others reach this host; it listens on this interface only. */
  readonly host: string;
  /** The port to listen on. Default: a free one. */
  readonly port?: number;
  /** Keys for TLS between all hosts. Without them messages are neither encrypted nor authenticated by certificates. */
  readonly tls?: Keys;
  /** Heartbeats; by default every 200 ms, lost after nine, so that a lost host is noticed within two seconds. */
  readonly heartbeat?: Heartbeat;
}

/** TLS keys as PEM text. */
export interface Keys {
  readonly key: string;
  readonly cert: string;
  /** Certificate of the authority that signed the certificates of all hosts. */
  readonly ca: string;
}

/** Error codes of OpenSSL, and of Node's check of certificates. */
const ofTrust = /^(?:ERR_SSL|ERR_TLS|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

/** Loaded only if there are keys: it costs a process 14 to 60 ms, of the 0.7 s in which two restart. */
const tls = () => process.getBuiltinModule("node:tls");

const usualHeartbeat: Heartbeat = { everyMs: 200, lostAfter: 9 };

/** A door on a TCP socket, for processes of several hosts. */
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
    // Errors of unauthenticated peers are ignored.
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
    // Only the signer of a certificate matters, not the name in it: hosts are known by number.
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
    // An ERR_ code means that the other end, or TLS, ended the call; any other, that this end does not trust the certificate.
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
 * Whether a caller has shown a trusted certificate in this call. Some versions of Node count a resumed session as authorized even
 * if it began without a certificate, so it is refused; Troupe's own calls resume none.
 */
function isTrusted(socket: TLSSocket): boolean {
  return socket.authorized && !socket.isSessionReused() && hasCertificate(socket);
}

const hasCertificate = (socket: TLSSocket): boolean => Object.keys(socket.getPeerCertificate()).length > 0;

/** Sends a caller the reason why its certificate is not trusted, and reads nothing from it. */
function refuse(socket: TLSSocket): void {
  socket.on("error", () => {});
  socket.resume();
  const got = hasCertificate(socket) ? `${socket.authorizationError} for the certificate` : "no certificate";
  socket.end(refusalFrame({ reason: "certificate", got: `${got} of the host that calls` }));
}

function cannotListen(host: string, port: number, cause: Error): TroupeError {
  return new TroupeError("NETWORK_ADDRESS", {
    where: "network",
    expected: "an address of this host that is free",
    got: `${host}:${port}, ${cause.message}`,
    hint: "name an interface of this host, with a free port or none",
    fields: { host, port },
    cause,
  });
}
