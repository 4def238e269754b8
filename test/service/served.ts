import { readFile } from "node:fs/promises";
import { type IncomingHttpHeaders, request } from "node:http";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import {
  CheckpointServer,
  CheckpointService,
  type CheckpointServiceOptions,
} from "../../src/tools/service/index.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** A complete answer. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** Its content as JSON. */
  readonly json: Record<string, unknown>;
}

/** A request. */
export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Uint8Array | string;
}

/** A server that a test may ask. */
export interface Served {
  readonly dir: string;
  readonly socket: string;
  readonly service: CheckpointService;
  readonly server: CheckpointServer;
  readonly token: string;
  ask(path: string, ask?: Ask): Promise<Answer>;
}

/** A service behind a server on a Unix socket, or on a free port with a token; both end with the test. */
export async function served(
  where: "socket" | "port",
  options: CheckpointServiceOptions & { readonly idleMs?: number } = {},
): Promise<Served> {
  const folder = await temporaryFolder();
  const dir = join(folder, "run");
  const { idleMs, ...rest } = options;
  const service = await CheckpointService.open({ dir, ...rest });
  onTestFinished(() => service.close());
  const tokenFile = join(folder, "token");
  const socket = join(folder, "socket");
  const place = where === "socket" ? { socket } : { port: 0, tokenFile };
  const server = await CheckpointServer.listen(service, {
    ...place,
    ...(idleMs === undefined ? {} : { idleMs }),
  });
  onTestFinished(() => server.close());
  const token = where === "socket" ? "" : (await readFile(tokenFile, "utf8")).trim();
  const target =
    where === "socket" ? { socketPath: socket } : { host: "127.0.0.1", port: new URL(server.address).port };
  const authorization = where === "socket" ? {} : { authorization: `Bearer ${token}` };
  const ask = (path: string, { method = "GET", headers = {}, body }: Ask = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const asking = request(
        { ...target, path, method, headers: { ...authorization, ...headers } as never },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part) => parts.push(part));
          response.once("end", () => {
            const bytes = Buffer.concat(parts);
            const { statusCode: status = 0, headers } = response;
            resolve({
              status,
              headers,
              bytes,
              get json() {
                return JSON.parse(bytes.toString());
              },
            });
          });
        },
      );
      asking.once("error", reject);
      asking.end(body);
    });
  return { dir, socket, service, server, token, ask };
}

/** How a tensor, or a slice of one, is put. */
export function putting(
  dtype: string,
  shape: readonly number[],
  bytes: Uint8Array,
  slice?: { readonly offset: readonly number[]; readonly shape: readonly number[] },
): Ask {
  const headers = {
    "content-type": "application/octet-stream",
    "content-length": String(bytes.length),
    "troupe-dtype": dtype,
    "troupe-shape": shape.join(","),
    ...(slice && { "troupe-offset": slice.offset.join(","), "troupe-slice-shape": slice.shape.join(",") }),
  };
  return { method: "PUT", headers, body: bytes };
}

/** How a save is committed. */
export function committing(content: object = {}): Ask {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content) };
}
