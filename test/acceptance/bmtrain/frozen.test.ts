// BMTrain tests requires_grad and requires_grad_multi_gpu: parameters of one block are frozen and trained in turns.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/index.ts";
import { type ByName, gradientsOf, parametersOf, train } from "../../fixtures/acceptance/train.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/acceptance/gpt.ts", import.meta.url);
const bias = "transformer.h.0.mlp.c_fc.bias";
const weight = "transformer.h.0.mlp.c_fc.weight";
const lr = 1e-2;

describe("a parameter", () => {
  const workspace = new Workspace();
  const options = { ranks: 2, zero: 3 };
  const [begin, later, back] = ["begin", "later", "back"].map((name) => workspace.path(name)) as [
    string,
    string,
    string,
  ];
  let trained: readonly ByName[];
  let moments: readonly ByName[];

  beforeAll(async () => {
    await train(job, begin, { ...options, steps: 1 }, { lr, frozen: "c_fc.bias" });
    await train(job, later, { ...options, steps: 2, resume: begin }, { lr, frozen: "c_fc" });
    const pretrained = join(later, "step-000002");
    await train(job, back, { ...options, recompute: true }, { lr, frozen: "c_fc.weight", pretrained });
    const ends = [
      [begin, 1],
      [later, 2],
      [back, 1],
    ] as const;
    trained = await Promise.all(ends.map(([dir, step]) => parametersOf({ dir }, step)));
    moments = await Promise.all(ends.map(([dir, step]) => gradientsOf({ dir }, step)));
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("that was trained may be frozen when a run goes on, and one that was frozen be trained by a new run", () => {
    const [first, second, third] = trained as [ByName, ByName, ByName];
    expect(second.get(weight)).toEqual(first.get(weight));
    expect(second.get(bias)).toEqual(first.get(bias));
    expect(third.get(weight)).toEqual(second.get(weight));
    expect(third.get(bias)).not.toEqual(second.get(bias));
    const others = [...first.keys()].filter((name) => !name.includes("c_fc"));
    expect(others.filter((name) => `${second.get(name)}` === `${first.get(name)}`)).toEqual([]);
  });

  it("has optimizer state while it is trained, and none while it is frozen", () => {
    const kept = moments.map((ofStep) => [ofStep.has(weight), ofStep.has(bias)]);
    expect(kept).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
  });

  it("that was frozen is refused as trained when a run goes on, naming the parameter and what to do", async () => {
    const run = train(
      job,
      workspace.path("refused"),
      { ...options, steps: 2, resume: begin },
      { lr, frozen: "" },
    );
    await expect(run).rejects.toMatchObject({
      code: "RESUME_MISMATCH",
      message: expect.stringContaining(`expected optimizer state of ${bias} in the checkpoint`),
    });
  });

  it("may be frozen with all others of its stage, also where the loss is scaled", async () => {
    const config = { lr, frozen: "wte|wpe|h[.]0", steps: 3 };
    const losses = async (folder: string, layout: RuntimeOptions) =>
      (await train(job, workspace.path(folder), { lossScale: 8, accumulation: 2, ...layout }, config)).losses;
    const oneRank = await losses("alone", { ranks: 1 });
    expect(oneRank).toHaveLength(3);
    expect(oneRank[2]).not.toBe(oneRank[0]);
    expect(await losses("staged", { ranks: 2, pp: 2 })).toEqual(oneRank);
  });
});
