import { request } from "node:http";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { committing, putting, served } from "./served.ts";

describe("a checkpoint server", () => {
  test("the server answers Expect: 100-continue only once the rest of the request is valid", async () => {
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

  test("the server refuses requests that do not fit before it takes memory or content", async () => {
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
      (
        await ask(
          "/checkpoints/1/tensors/b",
          putting("F32", [2], new Uint8Array(4), { offset: [0], shape: [1] }),
        )
      ).status,
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
  test("hostile headers are refused, with no other effect: 150 at random", async () => {
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
