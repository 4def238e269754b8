import { createServer, type OutgoingHttpHeaders, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Gate, type GateOptions, makeToken } from "../../src/runtime/access/index.ts";

const token = makeToken();
const bearer = { Authorization: `Bearer ${token}` };

/** Serves the callers that the gate admits: 200, and "reader" for those with the token. */
async function serve(options: Partial<GateOptions> = {}): Promise<Server> {
  const gate = new Gate({ host: "127.0.0.1", token, ...options });
  const server = createServer((incoming, response) => {
    const refusal = gate.refuse(incoming) ?? gate.refuseUnauthenticated(incoming);
    response.writeHead(refusal?.status ?? 200).end(refusal?.reason);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function ask(server: Server, headers: OutgoingHttpHeaders, method = "GET"): Promise<number> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, method, headers, setHost: false, agent: false });
    asked.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asked.on("error", reject).end();
  });
}

describe("Gate", () => {
  let server: Server;
  beforeAll(async () => {
    server = await serve();
  });
  afterAll(() => {
    server.close();
  });

  it.each(["localhost", "LOCALHOST:80", "127.0.0.1:4747", "[::1]:1", "[::1]"])(
    "lets in who calls this machine %s, at whatever port a tunnel has made of ours",
    async (Host) => {
      expect(await ask(server, { Host, ...bearer })).toBe(200);
      expect(await ask(server, { Host, ...bearer, Origin: `http://${Host.toLowerCase()}` })).toBe(200);
    },
  );

  const hosts = [
    "localhost:4747",
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1@evil.example",
    "",
    " ",
  ];
  const origins = [undefined, "http://localhost:4747", "http://evil.example", "http://localhost:80", "null"];
  const authorizations = [
    `Bearer ${token}`,
    undefined,
    "Bearer",
    `Bearer ${makeToken()}`,
    `Bearer ${token.slice(1)}`,
    `Bearer ${token}0`,
    `Basic ${token}`,
  ];
  const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "PURGE"];

  it("the gate refuses every combination with a wrong method, Host, Origin or token, and admits requests that are right in all four", async () => {
    const served: string[] = [];
    let numAsked = 0;
    for (const method of methods) {
      for (const Host of hosts) {
        for (const Origin of origins) {
          for (const Authorization of authorizations) {
            numAsked++;
            const headers = { Host, ...(Origin && { Origin }), ...(Authorization && { Authorization }) };
            const status = await ask(server, headers, method);
            if (status === 200) served.push(`${method} ${Host} ${Origin}`);
            else expect([400, 401, 403, 405]).toContain(status);
          }
        }
      }
    }
    expect(numAsked).toBe(methods.length * hosts.length * origins.length * authorizations.length);
    expect(served).toEqual([
      "GET localhost:4747 undefined",
      "GET localhost:4747 http://localhost:4747",
      "HEAD localhost:4747 undefined",
      "HEAD localhost:4747 http://localhost:4747",
    ]);
  });

  it("lets an address that was opened to others be called by its own name, and by no other", async () => {
    const open = await serve({ host: "192.0.2.7" });
    expect(await ask(open, { Host: "192.0.2.7:4747", ...bearer })).toBe(200);
    expect(await ask(open, { Host: "192.0.2.8:4747", ...bearer })).toBe(403);
    open.close();
  });

  it("the gate requires no Host on a Unix socket, but still the token", async () => {
    const socket = await serve({ host: undefined, methods: ["PUT"] });
    expect(await ask(socket, { Host: "any", ...bearer }, "PUT")).toBe(200);
    expect(await ask(socket, { Host: "any" }, "PUT")).toBe(401);
    expect(await ask(socket, { Host: "any", ...bearer }, "GET")).toBe(405);
    socket.close();
  });
});
