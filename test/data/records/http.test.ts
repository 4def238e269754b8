import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { HttpFile } from "../../../src/library/data/records/http-file.ts";
import { askRange } from "../../../src/library/data/records/range-connection.ts";
import { makeCertificate } from "../../fixtures/certificates.ts";
import { LocalProxy } from "../../package/proxy.ts";

const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) >> 3));

/** The bytes that a request asks for, and the head of the answer. */
function partOf({ headers }: IncomingMessage) {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
  const part = bytes.subarray(Number(from), Number(to) + 1);
  return {
    part,
    head: {
      etag: '"1"',
      "content-range": `bytes ${from}-${to}/${bytes.length}`,
      "content-length": part.length,
    },
  };
}

const answer = (request: IncomingMessage, response: ServerResponse) => {
  const { part, head } = partOf(request);
  response.writeHead(206, head).end(part);
};

async function started<S extends TcpServer>(server: S): Promise<S & { readonly port: number }> {
  server.listen(0);
  await once(server, "listening");
  onTestFinished(() => {
    if ("closeAllConnections" in server) (server as unknown as Server).closeAllConnections();
    server.close();
  });
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

const served = (listener: RequestListener) => started(createServer(listener));

test("ranges are asked for one after the other on a connection that is kept, and on another once the server has ended it", async () => {
  let [numConnections, numRequests] = [0, 0];
  const server = await served((request, response) => {
    numRequests++;
    answer(request, response);
  });
  server.on("connection", () => void numConnections++);
  // A name with several addresses, of which the server may answer one.
  const file = await HttpFile.open(`http://localhost:${server.port}/f?a=b%20c`);
  const opened = numConnections;
  for (const begin of [0, 7, 100_000, 299_999])
    expect(await file.read(begin, bytes.length)).toEqual(bytes.subarray(begin));
  expect(numConnections).toBe(opened + 1);
  server.closeIdleConnections();
  expect(await file.read(5, 6)).toEqual(bytes.subarray(5, 6));
  const many = Array.from({ length: 20 }, (_, at) => file.read(at, 200_000 + at));
  for (const [at, part] of (await Promise.all(many)).entries())
    expect(part.equals(bytes.subarray(at, 200_000 + at))).toBe(true);
  expect(numRequests).toBe(1 + 4 + 1 + 20);
});

test("an answer is read however it is cut into packets", async () => {
  let sizes: readonly number[] = [];
  const server = await started(
    createTcpServer((socket) => {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      const inPackets = async (asked: Buffer) => {
        const [, range] = /range: (.*)\r\n/i.exec(`${asked}`) ?? [];
        const { part, head } = partOf({ headers: { range } } as IncomingMessage);
        const lines = Object.entries(head).map(([name, value]) => `${name}:  ${value}\r\n`);
        const all = Buffer.concat([Buffer.from(`HTTP/1.1 206 \r\n${lines.join("")}\r\n`), part]);
        for (let [at, place] = [0, 0]; at < all.length; place++) {
          const end = at + (sizes[place] ?? all.length);
          socket.write(all.subarray(at, end));
          at = end;
          await new Promise(setImmediate);
        }
      };
      socket.on("data", (asked: Buffer) => void inPackets(asked));
    }),
  );
  const file = await HttpFile.open(`http://127.0.0.1:${server.port}/f`);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 12 }),
      fc.integer({ min: 0, max: 1_000 }),
      fc.integer({ min: 1, max: 20_000 }),
      async (cuts, begin, length) => {
        sizes = cuts;
        expect((await file.read(begin, begin + length)).equals(bytes.subarray(begin, begin + length))).toBe(
          true,
        );
      },
    ),
    { numRuns: 60 },
  );
});

test("a redirect is followed once, and again when its address is no longer valid", async () => {
  let ticket = 1;
  const paths: string[] = [];
  const server = await served((request, response) => {
    const { url = "" } = request;
    paths.push(url);
    if (url === "/f") return void response.writeHead(302, { location: `/there?ticket=${ticket}` }).end();
    if (url !== `/there?ticket=${ticket}`) return void response.writeHead(403).end();
    answer(request, response);
  });
  const file = await HttpFile.open(`http://127.0.0.1:${server.port}/f`);
  const read = async () => expect(await file.read(10, 20)).toEqual(bytes.subarray(10, 20));
  await read();
  ticket = 2;
  await read();
  await read();
  const [one, two] = ["/there?ticket=1", "/there?ticket=2"];
  expect(paths).toEqual(["/f", one, one, one, "/f", two, two]);
});

test("a server that sends its answer in parts, without a length, is asked by fetch", async () => {
  let numRequests = 0;
  const server = await served((request, response) => {
    numRequests++;
    const { part, head } = partOf(request);
    const { "content-length": _, ...others } = head;
    response.writeHead(206, others);
    response.write(part.subarray(0, 3));
    response.end(part.subarray(3));
  });
  const file = await HttpFile.open(`http://127.0.0.1:${server.port}/f`);
  for (let turn = 0; turn < 3; turn++) expect(await file.read(10, 20)).toEqual(bytes.subarray(10, 20));
  expect(numRequests).toBe(1 + 2 + 1 + 1);
});

test("every range is asked of the proxy, where Node is to ask one", async () => {
  const server = await served(answer);
  const proxy = new LocalProxy(server.port);
  await proxy.listen();
  onTestFinished(() => proxy.close());
  const module = new URL("../../../src/library/data/records/http-file.ts", import.meta.url);
  const program = `
    const { HttpFile } = await import(${JSON.stringify(module.href)});
    const file = await HttpFile.open("http://data.example/f");
    for (const begin of [10, 20]) process.stdout.write(await file.read(begin, begin + 10));`;
  const env = { ...process.env, NODE_USE_ENV_PROXY: "1", HTTP_PROXY: proxy.url };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
    env,
    encoding: "buffer",
  });
  expect(stdout).toEqual(bytes.subarray(10, 30));
  expect([...proxy.hosts]).toEqual(["data.example"]);
});

test("over TLS too, unless the certificate is not trusted", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-https-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { cert, key } = makeCertificate(folder);
  const [certificate, secret] = [readFileSync(cert), readFileSync(key)];
  const server = await started(createSecureServer({ cert: certificate, key: secret }, answer));
  const asked = { begin: 0, end: 1, accept: () => true };
  await expect(askRange(new URL(`https://localhost:${server.port}/f`), asked)).rejects.toThrow(/self-signed/);
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
  const file = await HttpFile.open(`https://localhost:${server.port}/f`);
  for (const begin of [0, 250_000])
    expect((await file.read(begin, bytes.length)).equals(bytes.subarray(begin))).toBe(true);
});
