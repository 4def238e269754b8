import { lstat, readdir, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { CheckpointServer, CheckpointService } from "../../../src/service/index.ts";
import { refusal } from "../refusal.ts";
import { committing, putting, served } from "./served.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const bytes = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);

describe("a checkpoint server", () => {
  test.each(["socket", "port"] as const)(
    "takes tensors and slices by %s, and answers when they are durable",
    async (where) => {
      const { ask, service } = await served(where);
      const name = encodeURIComponent("h.0/é weight");
      const columns = (begin: number, ...values: number[]) =>
        putting("F32", [2, 4], bytes(...values), { offset: [0, begin], shape: [2, 2] });
      const answers = await Promise.all([
        ask(`/checkpoints/12/tensors/${name}`, columns(2, 2, 3, 6, 7)),
        ask(`/checkpoints/12/tensors/${name}`, columns(0, 0, 1, 4, 5)),
        ask("/checkpoints/12/tensors/scalar", putting("F32", [], bytes(9))),
        ask("/checkpoints/12/optimizer/exp_avg.scalar", putting("F32", [1], bytes(8))),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
      expect((await ask("/checkpoints")).json).toEqual({ checkpoints: [], open: [12] });
      const saved = await ask(
        "/checkpoints/12/commit",
        committing({ metadata: { loss: 2 }, config: { model_type: "x" } }),
      );
      expect(saved).toMatchObject({
        status: 200,
        json: { path: join(service.location, "step-000012"), verified: true },
      });
      const whole = await ask(`/checkpoints/12/tensors/${name}`);
      expect(whole.headers).toMatchObject({
        "troupe-dtype": "F32",
        "troupe-shape": "2,4",
        "content-length": "32",
      });
      expect([...new Float32Array(new Uint8Array(whole.bytes).buffer)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      const part = await ask(`/checkpoints/12/tensors/${name}`, {
        headers: { "troupe-offset": "0,1", "troupe-slice-shape": "2,2" },
      });
      expect([...new Float32Array(new Uint8Array(part.bytes).buffer)]).toEqual([1, 2, 5, 6]);
      expect((await ask("/checkpoints/12")).json).toMatchObject({
        step: 12,
        metadata: { loss: 2 },
        config: { model_type: "x" },
        tensors: expect.arrayContaining([
          { name: "exp_avg.scalar", group: "optimizer", dtype: "F32", shape: [1] },
        ]),
      });
      expect((await ask("/checkpoints/12/verify")).json).toEqual({ step: 12, whole: true, damages: [] });
      expect((await ask("/checkpoints")).json).toMatchObject({
        checkpoints: [{ step: 12, latest: true }],
        open: [],
      });
    },
  );

  test("tells events as they happen", async () => {
    const { ask, socket } = await served("socket");
    const told: string[] = [];
    const heard = new Promise<void>((resolve) => {
      const asking = request({ socketPath: socket, path: "/events" }, (response) => {
        expect(response.headers["content-type"]).toBe("text/event-stream");
        response.setEncoding("utf8").on("data", (text: string) => {
          told.push(text);
          if (told.join("").includes("event: checkpoint.saved")) resolve();
        });
      });
      asking.end();
      onTestFinished(() => void asking.destroy());
    });
    await ask("/checkpoints/1/tensors/a", putting("U8", [3], Uint8Array.of(1, 2, 3)));
    await ask("/checkpoints/1/commit", committing());
    await heard;
    const events = told.join("").matchAll(/^event: (\S+)\ndata: (.*)$/gm);
    const kinds = [...events].map(([, kind, data]) => [kind, JSON.parse(data as string).step]);
    expect(kinds).toEqual(
      expect.arrayContaining([
        ["checkpoint.started", 1],
        ["checkpoint.progressed", 1],
        ["checkpoint.saved", 1],
      ]),
    );
  });

  test("forgets what a client that dies was sending, and leaves nothing of it", async () => {
    const { ask, socket, dir } = await served("socket", { stagingBytes: 4096 });
    const dying = connect(socket);
    const sent = new Promise((resolve) => dying.once("connect", resolve));
    await sent;
    dying.write(
      "PUT /checkpoints/5/tensors/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 4000\r\n" +
        "Troupe-Dtype: U8\r\nTroupe-Shape: 4000\r\n\r\n",
    );
    dying.write(new Uint8Array(2000));
    // The save is open once its first bytes have been looked at.
    while (((await ask("/checkpoints")).json.open as number[]).length === 0);
    dying.destroy();
    // Its bytes are sent again by another, all of them.
    let again = await ask("/checkpoints/5/tensors/a", putting("U8", [4000], new Uint8Array(4000).fill(7)));
    while (again.status === 400)
      again = await ask("/checkpoints/5/tensors/a", putting("U8", [4000], new Uint8Array(4000).fill(7)));
    expect(again.status).toBe(201);
    expect(await readdir(dir).catch(() => [])).toEqual([]);
    expect((await ask("/checkpoints/5", { method: "DELETE" })).status).toBe(200);
    expect((await ask("/checkpoints")).json.open).toEqual([]);
    // Its memory is free for another.
    expect((await ask("/checkpoints/6/tensors/a", putting("U8", [4096], new Uint8Array(4096)))).status).toBe(
      201,
    );
  });

  test("gives a save up that nobody adds to", async () => {
    const { ask } = await served("socket", { idleMs: 40 });
    await ask("/checkpoints/5/tensors/a", putting("U8", [8], new Uint8Array(4), { offset: [0], shape: [4] }));
    while (((await ask("/checkpoints")).json.open as number[]).length > 0);
    expect((await ask("/checkpoints/5/commit", committing())).status).toBe(404);
  });

  test("hangs up on a client that falls silent in the middle of a tensor, and gives its save up", async () => {
    const { ask, socket } = await served("socket", { idleMs: 60 });
    const silent = connect(socket);
    const ended = new Promise((resolve) => silent.once("close", resolve));
    silent.write(
      "PUT /checkpoints/5/tensors/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 8\r\n" +
        "Troupe-Dtype: U8\r\nTroupe-Shape: 8\r\n\r\n1234",
    );
    silent.resume();
    await ended;
    while (((await ask("/checkpoints")).json.open as number[]).length > 0);
  });

  test("asks a client that waits for it to send a tensor's bytes only once the rest was found good", async () => {
    const { socket } = await served("socket");
    const put = (shape: string) =>
      new Promise<[number | undefined, boolean]>((resolve, reject) => {
        const { headers } = putting("U8", [8], new Uint8Array(8));
        let asked = false;
        const path = "/checkpoints/1/tensors/a";
        const options = { socketPath: socket, path, method: "PUT" };
        const asking = request(
          { ...options, headers: { ...headers, "troupe-shape": shape, expect: "100-continue" } as never },
          (response) => resolve([response.resume().statusCode, asked]),
        );
        asking.once("error", reject).once("continue", () => {
          asked = true;
          asking.end(new Uint8Array(8));
        });
        asking.flushHeaders();
      });
    expect(await put("9")).toEqual([400, false]);
    expect(await put("8")).toEqual([201, true]);
  });

  test("refuses, before it takes memory or content, what does not fit", async () => {
    const { ask } = await served("socket", { stagingBytes: 4096 });
    const put = (change: Record<string, string>, body = new Uint8Array(16)) => {
      const asking = putting("F32", [4], body);
      return ask("/checkpoints/1/tensors/a", { ...asking, headers: { ...asking.headers, ...change } });
    };
    const refused = async (change: Record<string, string>) => (await put(change)).status;
    expect(await refused({ "troupe-dtype": "F99" })).toBe(400);
    expect(await refused({ "troupe-dtype": "__proto__" })).toBe(400);
    expect(await refused({ "troupe-shape": "5" })).toBe(400);
    expect(await refused({ "troupe-shape": "-4" })).toBe(400);
    expect(await refused({ "troupe-shape": "1e1" })).toBe(400);
    expect(await refused({ "troupe-shape": "9007199254740993" })).toBe(400);
    expect(await refused({ "troupe-shape": "1,".repeat(17) })).toBe(400);
    expect(await refused({ "troupe-shape": "94906266,94906266" })).toBe(400);
    expect(await refused({ "troupe-shape": "2048" })).toBe(400);
    expect(await refused({ "troupe-shape": "2048", "troupe-offset": "0", "troupe-slice-shape": "4" })).toBe(
      507,
    );
    expect(await refused({ "troupe-offset": "0" })).toBe(400);
    expect(await refused({ "troupe-offset": "1", "troupe-slice-shape": "4" })).toBe(400);
    expect(await refused({ "content-type": "text/plain" })).toBe(415);
    expect(
      (
        await ask("/checkpoints/1/tensors/a", {
          method: "PUT",
          headers: { "content-type": "application/octet-stream", "transfer-encoding": "chunked" },
          body: "x",
        })
      ).status,
    ).toBe(400);
    expect((await put({})).status).toBe(201);
    expect((await put({})).json.code).toBe("CHECKPOINT_SLICE");
    expect(
      (await ask("/checkpoints/1/tensors/b", putting("F32", [2], bytes(1), { offset: [0], shape: [1] })))
        .status,
    ).toBe(201);
    const early = await ask("/checkpoints/1/commit", committing());
    expect([early.status, early.json.code]).toEqual([409, "CHECKPOINT_INCOMPLETE"]);
    expect(early.json.message).toContain("b");
    expect((await ask("/checkpoints/1/commit", committing({ other: 1 }))).status).toBe(400);
    const noText = { ...committing(), body: Uint8Array.of(0x7b, 0xff, 0x7d) };
    expect((await ask("/checkpoints/1/commit", noText)).status).toBe(400);
    expect(
      (
        await ask("/checkpoints/1/commit", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: '{"metadata":{},"metadata":{}}',
        })
      ).status,
    ).toBe(400);
    expect(
      (
        await ask("/checkpoints/1/commit", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: `{"metadata":{"a":"${"x".repeat(1 << 20)}"}}`,
        })
      ).status,
    ).toBe(413);
    expect((await ask("/checkpoints/99")).status).toBe(404);
    expect((await ask("/checkpoints/../../etc/passwd")).status).toBe(404);
    expect((await ask("/checkpoints/1/tensors/%")).status).toBe(400);
  });
});

describe("hostile headers", () => {
  test("are refused, never more than that: 150 at random", async () => {
    const { ask } = await served("socket", { stagingBytes: 4096 });
    const word = fc.oneof(
      fc.constantFrom(
        "F32",
        "U8",
        "F4",
        "C64",
        "4",
        "2,2",
        "0",
        "",
        "-1",
        "1e9",
        "0,0",
        "4,",
        ",",
        "99999999999999999999",
      ),
      fc.stringMatching(/^[\x21-\x7e]{0,20}$/),
      fc.array(fc.nat(5), { maxLength: 18 }).map(String),
    );
    const headers = fc.record(
      { "troupe-dtype": word, "troupe-shape": word, "troupe-offset": word, "troupe-slice-shape": word },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(headers, fc.nat(40), fc.webPath(), async (given, length, path) => {
        const body = new Uint8Array(length);
        const sent = {
          "content-type": "application/octet-stream",
          "content-length": String(length),
          ...given,
        };
        const name = encodeURIComponent(path);
        const { status } = await ask(`/checkpoints/1/tensors/${name}`, {
          method: "PUT",
          headers: sent,
          body,
        });
        expect([201, 400, 404, 507]).toContain(status);
      }),
      { seed: 9, numRuns: 150 },
    );
  });
});

describe("who may come in", () => {
  test("by the port: only who knows the token, by a name of this machine, from no other page, with a method that is served", async () => {
    const { ask, token, server } = await served("port");
    const { port } = new URL(server.address);
    const good = {
      authorization: `Bearer ${token}`,
      host: `127.0.0.1:${port}`,
      origin: `http://127.0.0.1:${port}`,
    };
    const wrong = {
      authorization: ["", "Bearer", `Bearer ${token.slice(1)}0`, `Basic ${token}`],
      host: ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example"],
      origin: ["http://evil.example", "null", `http://evil.example:${port}`],
    };
    const paths = [
      "/checkpoints",
      "/events",
      "/checkpoints/1/tensors/a",
      "/checkpoints/1/commit",
      "/nothing",
    ];
    let numRefused = 0;
    for (const path of paths) {
      for (const method of [
        "GET",
        "HEAD",
        "PUT",
        "POST",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "PROPFIND",
      ]) {
        for (const [header, values] of Object.entries(wrong)) {
          for (const value of values) {
            const { status } = await ask(path, { method, headers: { ...good, [header]: value } });
            expect([header, value, method, path, status >= 400 && status < 500]).toEqual([
              header,
              value,
              method,
              path,
              true,
            ]);
            numRefused += 1;
          }
        }
      }
    }
    expect(numRefused).toBe(5 * 9 * 10);
    for (const method of ["PATCH", "OPTIONS", "TRACE"])
      expect((await ask("/checkpoints", { method })).status).toBe(405);
    expect((await ask("/checkpoints", { method: "DELETE" })).headers.allow).toBe("GET");
    const fine = await ask("/checkpoints", { headers: good });
    expect([
      fine.status,
      fine.headers["x-content-type-options"],
      fine.headers["access-control-allow-origin"],
    ]).toEqual([200, "nosniff", undefined]);
  });

  test("by the socket: only the user whose process serves it", async () => {
    const { ask, socket } = await served("socket");
    expect((await stat(socket)).mode & 0o777).toBe(0o600);
    expect((await ask("/checkpoints", { headers: { origin: "http://evil.example" } })).status).toBe(403);
    expect((await ask("/checkpoints", { method: "OPTIONS" })).status).toBe(405);
  });

  test("the token is in a file that only its owner reads, and no other file is taken for it", async () => {
    const folder = await temporaryFolder();
    await using service = await CheckpointService.open({ dir: join(folder, "run") });
    const tokenFile = join(folder, "token");
    await using server = await CheckpointServer.listen(service, { port: 0, tokenFile });
    expect(server.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await stat(tokenFile)).mode & 0o777).toBe(0o600);
    const open = join(folder, "open");
    await writeFile(open, `${"0".repeat(64)}\n`, { mode: 0o644 });
    expect((await refusal(() => CheckpointServer.listen(service, { port: 0, tokenFile: open }))).code).toBe(
      "ACCESS_TOKEN",
    );
  });

  test("a socket that a killed server left is taken over; one that answers, and any other file, is not", async () => {
    const { service, socket, server } = await served("socket");
    expect((await refusal(() => CheckpointServer.listen(service, { socket }))).code).toBe("CHECKPOINT_SERVE");
    const file = `${socket}.txt`;
    await writeFile(file, "mine");
    expect((await refusal(() => CheckpointServer.listen(service, { socket: file }))).message).toContain(
      "no socket",
    );
    await server.close();
    expect(await lstat(socket).catch(() => undefined)).toBeUndefined();
    expect((await refusal(() => CheckpointServer.listen(service, {}))).code).toBe("USAGE");
    expect((await refusal(() => CheckpointServer.listen(service, { port: 0 }))).code).toBe("USAGE");
    await (await CheckpointServer.listen(service, { socket })).close();
  });
});
