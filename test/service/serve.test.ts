import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { committing, putting, served } from "./served.ts";

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
    const reported: string[] = [];
    const heard = new Promise<void>((resolve) => {
      const asking = request({ socketPath: socket, path: "/events" }, (response) => {
        expect(response.headers["content-type"]).toBe("text/event-stream");
        response.setEncoding("utf8").on("data", (text: string) => {
          reported.push(text);
          if (reported.join("").includes("event: checkpoint.saved")) resolve();
        });
      });
      asking.end();
      onTestFinished(() => void asking.destroy());
    });
    await ask("/checkpoints/1/tensors/a", putting("U8", [3], Uint8Array.of(1, 2, 3)));
    await ask("/checkpoints/1/commit", committing());
    await heard;
    const events = reported.join("").matchAll(/^event: (\S+)\ndata: (.*)$/gm);
    const kinds = [...events].map(([, kind, data]) => [kind, JSON.parse(data as string).step]);
    expect(kinds).toEqual(
      expect.arrayContaining([
        ["checkpoint.started", 1],
        ["checkpoint.progressed", 1],
        ["checkpoint.saved", 1],
      ]),
    );
  });

  test("the server drops a dead client's unfinished save, and leaves nothing of it", async () => {
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
    expect(await readdir(dir)).toEqual([".lock"]);
    expect((await ask("/checkpoints/5", { method: "DELETE" })).status).toBe(200);
    expect((await ask("/checkpoints")).json.open).toEqual([]);
    // Its memory is free for another.
    expect((await ask("/checkpoints/6/tensors/a", putting("U8", [4096], new Uint8Array(4096)))).status).toBe(
      201,
    );
  });

  test("the server abandons a save that no client adds to", async () => {
    const { ask } = await served("socket", { idleMs: 40 });
    await ask("/checkpoints/5/tensors/a", putting("U8", [8], new Uint8Array(4), { offset: [0], shape: [4] }));
    while (((await ask("/checkpoints")).json.open as number[]).length > 0);
    expect((await ask("/checkpoints/5/commit", committing())).status).toBe(404);
  });

  test("the server disconnects a client that falls silent in the middle of a tensor, and abandons its save", async () => {
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
});
