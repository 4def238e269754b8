import { describe, expect, test } from "vitest";
import { StagedSave } from "../../../src/service/staged-save.ts";
import { StagingMemory } from "../../../src/service/staging.ts";
import { refusal } from "../refusal.ts";
import { putting, served } from "./served.ts";

describe("what clients may pile up", () => {
  test("is 16 saves: who would open one more is told to come again, and may once one was given up", async () => {
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

  test("is 4,096 slices of one tensor", async () => {
    const save = new StagedSave(1, new StagingMemory(1 << 16).open());
    const tensor = { group: "weights", name: "a", dtype: "U8", shape: [5000] } as const;
    const receive = (index: number) => save.receive(tensor, 1, { offset: [index], shape: [1] });
    for (let index = 0; index < 4096; index++) receive(index);
    const error = await refusal(() => receive(4096));
    expect([error.code, error.message.includes("at most 4096 slices")]).toEqual(["CHECKPOINT_SLICE", true]);
  });
});
