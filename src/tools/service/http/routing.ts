import { ownValue } from "../../../errors/untrusted/index.ts";
import { Refused } from "../../../job/http.ts";
import type { LocalCall } from "./local-server.ts";

/** Every path of a protocol and its methods; a handler gets the groups of its path, decoded. */
export type Routes<C extends LocalCall> = readonly {
  readonly path: RegExp;
  readonly methods: Readonly<Record<string, (call: C, ...captured: string[]) => Promise<void>>>;
}[];

/** Methods of any path. */
export function methodsOf(routes: Routes<never>): string[] {
  return [...new Set(routes.flatMap(({ methods }) => Object.keys(methods)))];
}

/** Calls the handler of a request. @throws {Refused} 404 for an unknown path, 405 for an unknown method, naming `page` */
export function route<C extends LocalCall>(routes: Routes<C>, call: C, page: string): Promise<void> {
  for (const { path: pattern, methods } of routes) {
    const match = pattern.exec(call.path);
    if (match === null) continue;
    const handler = ownValue(methods, call.request.method ?? "");
    if (handler !== undefined) return handler(call, ...match.slice(1).map(decoded));
    const allowed = Object.keys(methods);
    throw new Refused(405, `expected ${allowed.join(" or ")}`, { allow: allowed.join(", ") });
  }
  throw new Refused(404, `no such path: see ${page}`);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refused(400, "expected a path whose percent signs are well-formed");
  }
}
