import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { Dashboard } from "../../src/job/dashboard/index.ts";
import type { Door } from "../../src/runtime/transport/hub/door.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { UnixDoor } from "../../src/runtime/transport/unix/unix-door.ts";
import { CheckpointServer, CheckpointService } from "../../src/tools/service/index.ts";
import { prometheusSink } from "../../src/tools/sinks/index.ts";
import { makeCertificate } from "../fixtures/certificates.ts";

/** A port that is open. */
interface Open {
  readonly at: NetConnectOpts;
  /** The bytes that a caller sends before it falls silent. */
  readonly begins: string;
  /** Resolves when a caller with the right token has been served. */
  serve(): Promise<void>;
}

const numCallers = 500;
const most = 64;
const host = "127.0.0.1";
const source = fileURLToPath(new URL("../../src", import.meta.url));

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "troupe-callers-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** An HTTP door, which answers a request for this path. */
function http(at: { readonly port: number } | { readonly path: string }, path: string, token?: string): Open {
  return {
    at: "port" in at ? { host, ...at } : at,
    begins: "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    serve: () =>
      new Promise((resolve, reject) => {
        const where = "port" in at ? { host, ...at } : { socketPath: at.path };
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
        const asked = request({ ...where, path, headers }, (answer) => {
          asked.destroy();
          if (answer.statusCode === 200) resolve();
          else reject(new Error(`status ${answer.statusCode}`));
        });
        asked.on("error", reject).end();
      }),
  };
}

/** A hub's door, which takes what another hub with the same token says. */
async function hub(
  makeDoor: (index: number) => Door,
  at: (address: string) => NetConnectOpts,
): Promise<Open> {
  const heard = Promise.withResolvers<void>();
  const openHub = async (index: number) => {
    const opened = await Hub.open({
      index,
      door: makeDoor(index),
      token: "token",
      maxFrameBytes: 1 << 10,
      onControl: () => heard.resolve(),
      onLost: () => {},
    });
    onTestFinished(() => opened.close());
    return opened;
  };
  const here = await openHub(0);
  return {
    at: at(here.address),
    begins: "",
    async serve() {
      const other = await openHub(1);
      other.know(0, here.address);
      other.control(0, new Uint8Array(1));
      await heard.promise;
    },
  };
}

function overNetwork(address: string): NetConnectOpts {
  const [, port] = JSON.parse(address) as [string, number];
  return { host, port };
}

async function service(onSocket: boolean): Promise<Open> {
  const dir = folder();
  const opened = await CheckpointService.open({ dir: join(dir, "run") });
  onTestFinished(() => opened.close());
  const [socket, tokenFile] = [join(dir, "socket"), join(dir, "token")];
  const server = await CheckpointServer.listen(opened, onSocket ? { socket } : { port: 0, tokenFile });
  onTestFinished(() => server.close());
  if (onSocket) return http({ path: socket }, "/checkpoints");
  const token = readFileSync(tokenFile, "utf8").trim();
  return http({ port: Number(new URL(server.address).port) }, "/checkpoints", token);
}

/** Every door of Troupe's own, by the file that makes its server. */
const doors: readonly (readonly [name: string, file: string, open: () => Promise<Open>])[] = [
  [
    "Prometheus's",
    "job/http.ts",
    async () => {
      const sink = await prometheusSink({ port: 0 });
      onTestFinished(() => sink.close());
      return http({ port: Number(new URL(sink.url).port) }, "/metrics");
    },
  ],
  [
    "the dashboard's",
    "job/http.ts",
    async () => {
      const dashboard = await Dashboard.open({ port: 0 });
      onTestFinished(() => dashboard.close());
      const { hash, port } = new URL(dashboard.url);
      return http({ port: Number(port) }, "/stream", hash.replace("#token=", ""));
    },
  ],
  ["the checkpoint service's port", "job/http.ts", () => service(false)],
  ["the checkpoint service's socket", "job/http.ts", () => service(true)],
  ["the hosts'", "runtime/transport/tcp/tcp-door.ts", () => hub(() => new TcpDoor({ host }), overNetwork)],
  [
    "the hosts' with TLS",
    "runtime/transport/tcp/tcp-door.ts",
    () => {
      const { cert, key, ca } = makeCertificate(folder());
      const read = (file: string) => readFileSync(file, "utf8");
      const tls = { cert: read(cert), key: read(key), ca: read(ca) };
      return hub(() => new TcpDoor({ host, tls }), overNetwork);
    },
  ],
  [
    "a process's",
    "runtime/transport/unix/unix-door.ts",
    () => {
      const sockets = folder();
      return hub(
        (index) => new UnixDoor(sockets, index),
        (path) => ({ path }),
      );
    },
  ],
];

/** A connection that falls silent once it is there. */
async function callSilently({ at, begins }: Open): Promise<Socket> {
  const caller = connect(at);
  onTestFinished(() => void caller.destroy());
  await once(caller, "connect");
  caller.on("error", () => {});
  caller.resume();
  if (begins !== "") caller.write(begins);
  return caller;
}

describe.each(doors)("%s door", (_, _file, open) => {
  test("500 silent callers hold 64 connections, and admitted callers are served at once", async () => {
    const door = await open();
    let numGone = 0;
    const { promise: areGone, resolve } = Promise.withResolvers<void>();
    for (let count = 0; count < numCallers; count++) {
      const caller = await callSilently(door);
      caller.once("close", () => ++numGone === numCallers - most && resolve());
    }
    await areGone;
    await door.serve();
  });
});

test("a caller that never ends its first request is disconnected, at every port", async () => {
  const callers = await Promise.all(doors.map(async ([, , open]) => await callSilently(await open())));
  await Promise.all(callers.map((caller) => once(caller, "close")));
});

test("every server that Troupe opens counts its callers, and is one of these doors", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const textOf = (file: string) => readFileSync(join(source, file), "utf8");
  // A process's two outputs come by a socket in a folder of this user's own; a third caller is hung up on.
  const ofOutputs = join("runtime", "hosting", "fork-server.ts");
  const serving = files.filter((file) => file !== ofOutputs && /\bcreateServer\(/.test(textOf(file)));
  expect(serving.sort()).toEqual([...new Set(doors.map(([, file]) => file))].sort());
  expect(serving.filter((file) => !/new Callers\(/.test(textOf(file)))).toEqual([]);
});
