import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Dashboard } from "../../src/dashboard/index.ts";
import { CheckpointServer, CheckpointService } from "../../src/service/index.ts";
import { prometheusSink } from "../../src/sinks/index.ts";

/** A server that stands, and what its owner asks of it. */
interface Standing {
  readonly url: string;
  readonly path: string;
  readonly token?: string;
}

const numCallers = 2_000;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "troupe-unauthenticated-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Every port that a run or a service opens, and how many unauthenticated peers may stand before it. */
const doors: readonly [name: string, most: number, open: () => Promise<Standing>][] = [
  [
    "Prometheus's",
    16,
    async () => {
      const sink = await prometheusSink({ port: 0 });
      onTestFinished(() => sink.close());
      return { url: sink.url, path: "/metrics" };
    },
  ],
  [
    "the dashboard's",
    64,
    async () => {
      const dashboard = await Dashboard.open({ port: 0 });
      onTestFinished(() => dashboard.close());
      const { hash, origin } = new URL(dashboard.url);
      return { url: origin, path: "/stream", token: hash.replace("#token=", "") };
    },
  ],
  [
    "the checkpoint service's",
    64,
    async () => {
      const dir = folder();
      const service = await CheckpointService.open({ dir: join(dir, "run") });
      onTestFinished(() => service.close());
      const tokenFile = join(dir, "token");
      const server = await CheckpointServer.listen(service, { port: 0, tokenFile });
      onTestFinished(() => server.close());
      const token = readFileSync(tokenFile, "utf8").trim();
      return { url: server.address, path: "/checkpoints", token };
    },
  ],
];

/** A connection that sends half of a request, and nothing more. */
function halfRequest(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
      resolve(socket);
    });
    socket.on("error", (error) => (socket.connecting ? reject(error) : undefined));
  });
}

describe.each(doors)("%s port", (_, most, open) => {
  test("lets 2,000 callers that say nothing hold a few connections, and answers its owner at once", async () => {
    const { url, path, token } = await open();
    const callers: Socket[] = [];
    onTestFinished(() => {
      for (const caller of callers) caller.destroy();
    });
    let numGone = 0;
    const { promise: areGone, resolve } = Promise.withResolvers<void>();
    for (let count = 0; count < numCallers; count++) {
      const caller = await halfRequest(Number(new URL(url).port));
      callers.push(caller);
      caller.resume().once("close", () => ++numGone === numCallers - most && resolve());
    }
    await areGone;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const controller = new AbortController();
    const answer = await fetch(new URL(path, url), { headers, signal: controller.signal });
    expect(answer.status).toBe(200);
    controller.abort();
    expect(numGone).toBeLessThanOrEqual(numCallers - most + 1);
  });
});
