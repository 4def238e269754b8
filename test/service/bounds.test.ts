import { describe, expect, test } from "vitest";
import { StagedSave } from "../../src/tools/service/staged-save.ts";
import { StagingMemory } from "../../src/tools/service/staging.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { putting, served } from "./served.ts";

describe("limits for clients", () => {
  test("the limit is 16 open saves: a client that opens one more must try again, and succeeds once a save was abandoned", async () => {
    const { ask } = await served("socket");
    const one = putting("U8", [1], Uint8Array.of(7));
    for (let step = 1; step <= 16; step++)
      expect((await ask(`/checkpoints/${step}/tensors/a`, one)).status).toBe(201);
    const more = await ask("/checkpoints/17/tensors/a", one);
    expect([more.status, more.headers["retry-after"]]).toEqual([503, "10"]);
    expect((await ask("/checkpoints/1/tensors/b", one)).status).toBe(201);
    expect((await ask("/checkpoints/3", { method: "DELETE" })).status).toBe(200);
    expect((await ask("/checkpoints/17/tensors/a", one)).status).toBe(201);
  });

  test("the limit is 4,096 slices of one tensor", async () => {
    const save = new StagedSave(1, new StagingMemory(1 << 16).open());
    const tensor = { group: "weights", name: "a", dtype: "U8", shape: [5000] } as const;
    const receive = (index: number) => save.receive(tensor, 1, { offset: [index], shape: [1] });
    for (let index = 0; index < 4096; index++) receive(index);
    const error = await refusal(() => receive(4096));
    expect([error.code, error.message.includes("at most 4096 slices")]).toEqual(["CHECKPOINT_SLICE", true]);
  });

  test("the limit is the declared memory, of which a save holds no more than its own tensors", async () => {
    const memory = new StagingMemory(60 << 20);
    const tensor = { group: "weights", name: "a", dtype: "U8" } as const;
    const staged = (sizeBytes: number) => {
      const save = new StagedSave(1, memory.open());
      save.receive({ ...tensor, shape: [sizeBytes] }, sizeBytes);
      return save;
    };
    staged(50 << 20).area.release();
    // The buffer that stands free is not for this one: the next large save finds it.
    const small = staged(1000);
    const large = staged(50 << 20);
    large.area.release();
    const more = staged(60_000);
    const another = staged((60 << 20) - 61_000);
    const error = await refusal(() => staged(1));
    expect(error.code).toBe("CHECKPOINT_STAGING");
    for (const save of [small, more, another]) save.area.release();
    staged(60 << 20);
  });
});
