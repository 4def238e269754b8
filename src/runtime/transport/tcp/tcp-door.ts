import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import { TroupeError } from "../../../errors.ts";
import type { Door, Heartbeat } from "../hub/door.ts";

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

  constructor(network: Network) {
    this.#network = network;
    this.heartbeat = network.heartbeat ?? usualHeartbeat;
    this.#keys = network.tls && { ...network.tls, requestCert: true, rejectUnauthorized: true };
    this.#server = this.#keys === undefined ? createServer() : tls().createServer(this.#keys);
  }

  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return JSON.stringify([this.#network.host, port]);
  }

  async open(onCall: (socket: Socket) => void): Promise<void> {
    const { host, port = 0 } = this.#network;
    this.#server.on(this.#keys === undefined ? "connection" : "secureConnection", (socket: Socket) => {
      socket.setNoDelay(true);
      onCall(socket);
    });
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
    return new TroupeError(
      "PEER_UNTRUSTED",
      {
        where: "network",
        expected: "certificates of both ends that the CA of the other has signed",
        got: error.message,
        hint: "see --tls-cert and --tls-ca of both",
      },
      { cause: error },
    );
  }

  close(): void {
    this.#server.close();
  }
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
