import type { IncomingMessage } from "node:http";
import { hostname, networkInterfaces } from "node:os";
import { sameToken } from "./token.ts";

/** What a gate knows. */
export interface GateOptions {
  /** The address that is listened on; undefined for a Unix socket, whose callers are on this machine and call no name. */
  readonly host?: string | undefined;
  /** What {@link Gate.refuseUnauthenticated} asks for; undefined lets everyone in who is not refused otherwise. */
  readonly token?: string | undefined;
  /** Methods that are served at all: GET and HEAD, unless told. */
  readonly methods?: readonly string[];
}

/** Why a request is not served. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 405;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Decides who may come in to an HTTP server. A page of another site can make a browser send requests here, also under a
 * name of its own that it points at this machine (DNS rebinding): so the method, the name that was called (`Host`) and the
 * page that calls (`Origin`) are looked at before anything else, for every path. The port does not matter, since an SSH
 * tunnel changes it. The token comes in a header, not in a cookie, which a browser would send along for other pages too.
 */
export class Gate {
  readonly #methods: readonly string[];
  /** Undefined: any. */
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

  /** @returns why a request is refused on any path, token or not; undefined where it is not */
  refuse({ method = "", headers, headersDistinct }: IncomingMessage): Refusal | undefined {
    if (!this.#methods.includes(method)) {
      const allow = this.#methods.join(", ");
      return { status: 405, reason: `only ${allow} are served`, headers: { allow } };
    }
    if ((headersDistinct.host?.length ?? 0) !== 1) return { status: 400, reason: "one Host is needed" };
    const host = (headers.host as string).toLowerCase();
    if (this.#hosts?.has(withoutPort(host)) === false) {
      return { status: 403, reason: "this server is not known by that name (Host)" };
    }
    const origins = headersDistinct.origin ?? [];
    // No page reaches a Unix socket: what calls itself one is refused there.
    const own = this.#hosts === undefined ? [] : [`http://${host}`, `https://${host}`];
    if (!origins.every((origin) => own.includes(origin))) {
      return { status: 403, reason: "pages of other sites are not served (Origin)" };
    }
    return undefined;
  }

  /** @returns why a request, not refused otherwise, may not have what the token guards; undefined where it may */
  refuseUnauthenticated({ headers }: IncomingMessage): Refusal | undefined {
    if (this.#token === undefined) return undefined;
    const [, given = ""] = /^Bearer (\S+)$/i.exec(headers.authorization ?? "") ?? [];
    if (sameToken(given, this.#token)) return undefined;
    return { status: 401, reason: "the token is needed, as Authorization: Bearer TOKEN" };
  }
}

/** Whether an address can be reached from this machine only. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** An address as it stands in a URL: one with colons in brackets. */
export function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** By which names an address that was opened to others may be called: as it was given, and the machine's own. */
function namesOf(host: string): string[] {
  const isAny = host === "0.0.0.0" || host === "::";
  const interfaces = isAny ? Object.values(networkInterfaces()).flatMap((addresses = []) => addresses) : [];
  const addresses = [host, ...interfaces.map(({ address }) => address)];
  return [hostname(), ...addresses.map(inUrl)].map((name) => name.toLowerCase());
}

function withoutPort(host: string): string {
  return host.replace(/:\d{1,5}$/, "");
}
