import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keepStore, Store } from "../../src/compute/collectives/index.ts";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { Dashboard } from "../../src/job/dashboard/index.ts";
import { makeToken } from "../../src/runtime/access/index.ts";
import { CheckpointServer, CheckpointService } from "../../src/tools/service/index.ts";
import { prometheusSink } from "../../src/tools/sinks/index.ts";
import { portsOf } from "../chaos/leftovers.ts";

/** A port that Troupe has opened, where only the port was chosen. */
interface Door extends AsyncDisposable {
  readonly port: number;
  /** A path that it serves. */
  readonly path: string;
  /** The token that it requires; undefined if it requires none. */
  readonly token: string | undefined;
}

/** Every HTTP server that Troupe has. */
const doors: Readonly<Record<string, () => Promise<Door>>> = {
  async "the dashboard"() {
    const dashboard = await Dashboard.open({ port: 0 });
    const { port, hash } = new URL(dashboard.url);
    const token = hash.slice("#token=".length);
    return { port: Number(port), path: "/stream", token, [Symbol.asyncDispose]: () => dashboard.close() };
  },
  async "the checkpoint server"() {
    const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
    const tokenFile = join(folder, "token");
    const service = await CheckpointService.open({ dir: join(folder, "run") });
    const server = await CheckpointServer.listen(service, { port: 0, tokenFile });
    return {
      port: Number(new URL(server.address).port),
      path: "/checkpoints",
      token: readFileSync(tokenFile, "utf8").trim(),
      async [Symbol.asyncDispose]() {
        await server.close();
        await service.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
  async "the Prometheus sink"() {
    const sink = await prometheusSink({ port: 0 });
    const port = Number(new URL(sink.url).port);
    return { port, path: "/metrics", token: undefined, [Symbol.asyncDispose]: () => sink.close() };
  },
};

/** The first line of what is answered to these lines; "" where the caller is hung up on. */
function answerTo(port: number, lines: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("latin1").on("data", (text) => {
      answer += text;
      if (answer.includes("\r\n")) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer.split("\r\n")[0] ?? ""));
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  });
}

/** The addresses at which this process listens, in hexadecimal, of a port. */
function listeningAt(port: number): string[] {
  const inHex = port.toString(16).toUpperCase().padStart(4, "0");
  return portsOf([String(process.pid)]).filter((place) => place.endsWith(`:${inHex}`));
}

it.skipIf(!nativeInfo().gloo)(
  "the rendezvous stores of hosts and groups listen on loopback only, if that is the address",
  () => {
    using kept = keepStore();
    expect(listeningAt(Number(kept.rendezvous.split(":").at(-1)))).toEqual([
      expect.stringContaining("tcp 0100007F:"),
    ]);
    for (const host of ["127.0.0.1", "localhost"]) {
      using store = new Store({ host, port: 0, listens: true, timeoutMs: 5_000 });
      store.set("key", "value");
      expect(store.read("key")).toBe("value");
      const [place, ...more] = listeningAt(Number(store.rendezvous.split(":").at(-1)));
      expect([place, more]).toEqual([expect.stringMatching(/^tcp6? (0100007F|0{24}01000000):/), []]);
    }
  },
);

describe.each(Object.keys(doors))("%s", (name) => {
  let door: Door;
  beforeAll(async () => {
    door = await (doors[name] as () => Promise<Door>)();
  });
  afterAll(() => door[Symbol.asyncDispose]());

  it("every port listens on loopback only, as the kernel reports it", () => {
    const { port } = door;
    expect(listeningAt(port)).toEqual([expect.stringContaining("tcp 0100007F:")]);
  });

  it("never becomes a WebSocket or a tunnel, for any Host, Origin and token", async () => {
    const { port, path, token } = door;
    const good = { host: `localhost:${port}`, origin: `http://localhost:${port}` };
    const hosts = [good.host, "evil.example", `evil.example:${port}`];
    const origins = [undefined, good.origin, "http://evil.example", "null"];
    const tokens = token === undefined ? [undefined] : [token, undefined, makeToken()];
    const asks = [
      [`GET ${path} HTTP/1.1`, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
      [`GET ${path} HTTP/1.1`, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"],
      ["CONNECT evil.example:80 HTTP/1.1"],
    ];
    for (const ask of asks) {
      for (const host of hosts) {
        for (const origin of origins) {
          for (const given of tokens) {
            const lines = [...ask, `Host: ${host}`];
            if (origin !== undefined) lines.push(`Origin: ${origin}`);
            if (given !== undefined) lines.push(`Authorization: Bearer ${given}`);
            const answer = await answerTo(port, lines);
            const isOurs = host === good.host && (origin ?? good.origin) === good.origin && given === token;
            // Admitted callers are answered in plain HTTP; all others are refused or disconnected.
            const may = isOurs && ask.length > 1 ? /^HTTP\/1\.1 [24]|^$/ : /^HTTP\/1\.1 4|^$/;
            expect(answer, lines.join(", ")).toMatch(may);
          }
        }
      }
    }
  });
});
