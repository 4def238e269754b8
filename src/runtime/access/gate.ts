import type { IncomingMessage } from "node:http";
import { hostname, networkInterfaces } from "node:os";
import { sameToken } from "./token.ts";

/** Options of a {@link Gate}. */
export interface GateOptions {
  /** The address to listen on; undefined for a Unix socket, whose callers are local and use no host name. */
  readonly host?: string | undefined;
  /** The token that {@link Gate.refuseUnauthenticated} requires; undefined: none. */
  readonly token?: string | undefined;
  /** Methods that are served. Default: GET and HEAD. */
  readonly methods?: readonly string[];
}

/** Why a request is refused. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 405;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Decides which requests an HTTP server accepts. A page of another site can make a browser send requests here, even under its own
 * host name that it points at this machine (DNS rebinding). So the method, the host name (`Host`) and the calling page (`Origin`) are
 * checked first, for every path. Ports are ignored, since an SSH tunnel changes them. The token is sent in a header: browsers would
 * add a cookie to requests of other pages too.
 */
export class Gate {
  readonly #methods: readonly string[];
  /** Allowed host names; undefined: any. */
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #token: string | undefined;

  constructor({ host, token, methods = ["GET", "HEAD"] }: GateOptions) {
    this.#methods = methods;
    this.#hosts =
      host === undefined
        ? undefined
        : new Set([...loopbackNames, ...(isLoopback(host) ? [] : namesOf(host))]);
    this.#token = token;
  }

  /** @returns why a request is refused on any path, with or without the token; undefined if it is not */
  refuse({ method = "", headers, headersDistinct }: IncomingMessage): Refusal | undefined {
    if (!this.#methods.includes(method)) {
      const allow = this.#methods.join(", ");
      return { status: 405, reason: `only ${allow} are served`, headers: { allow } };
    }
    if ((headersDistinct.host?.length ?? 0) !== 1) return { status: 400, reason: "one Host is needed" };
    const host = (headers.host as string).toLowerCase();
    if (this.#hosts?.has(withoutPort(host)) === false)
      return { status: 403, reason: "this server is not known by that name (Host)" };
    const origins = headersDistinct.origin ?? [];
    // Pages cannot reach a Unix socket: any request with an Origin is refused.
    const own = this.#hosts === undefined ? [] : [`http://${host}`, `https://${host}`];
    if (!origins.every((origin) => own.includes(origin)))
      return { status: 403, reason: "pages of other sites are not served (Origin)" };
    return undefined;
  }

  /** @returns why a request lacks access to what the token protects; undefined if it has access */
  refuseUnauthenticated({ headers }: IncomingMessage): Refusal | undefined {
    if (this.#token === undefined) return undefined;
    const [, given = ""] = /^Bearer (\S+)$/i.exec(headers.authorization ?? "") ?? [];
    if (sameToken(given, this.#token)) return undefined;
    return { status: 401, reason: "the token is needed, as Authorization: Bearer TOKEN" };
  }
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** An address in a URL: IPv6 in brackets. */
export function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** Host names for an address that other machines can reach: the address as given, and this machine's own names. */
function namesOf(host: string): string[] {
  const isAny = host === "0.0.0.0" || host === "::";
  const interfaces = isAny ? Object.values(networkInterfaces()).flatMap((addresses = []) => addresses) : [];
  const addresses = [host, ...interfaces.map(({ address }) => address)];
  return [hostname(), ...addresses.map(inUrl)].map((name) => name.toLowerCase());
}

const withoutPort = (host: string): string => host.replace(/:\d{1,5}$/, "");
