import { afterAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions, Tensor } from "../../../src/entries/index.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { batchSize, dataset, lossesIn, type Policy, rangeAt, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 8;

/** Steps of a script's own samples, half of them in two parts, and what the model says of others in between. */
async function train(model: Policy): Promise<readonly number[]> {
  const data = await dataset(workspace);
  const said: number[] = [];
  for (let step = 0; step < steps; step++) {
    const batch = data.batch("train", step * batchSize, batchSize) as { inputIds: Tensor; targets: Tensor };
    void model.accumulate("loss", batch);
    if (step % 2 === 0) void model.accumulate("loss", rangeAt(step + 100));
    const { rows } = await model.call("logProbs", rangeAt(200));
    said.push(rows.logProbs.sum().item());
    void model.step({ lr: 1e-2 / (step + 1) });
  }
  return said;
}

describe("a live model with a rank that dies", () => {
  const layouts: readonly (readonly [string, RuntimeOptions, string])[] = [
    ["back at its beginning", { ranks: 2, zero: 3 }, "beginning"],
    ["from a copy in memory", { ranks: 2, zero: 0, checkpoint: { inMemoryEverySteps: 2 } }, "memory"],
    [
      "processes, from a copy in memory",
      { ranks: 2, zero: 2, placement: "process", checkpoint: { inMemoryEverySteps: 3 } },
      "memory",
    ],
    [
      "from a checkpoint",
      { ranks: 2, tp: 2, checkpoint: { dir: workspace.path("kept"), everySteps: 3 } },
      "checkpoint",
    ],
  ];

  it.each(layouts)("makes the calls since then again, to the same bits: %s", async (name, layout, from) => {
    let undisturbed: readonly number[] = [];
    const { checkpoint: _, ...plain } = layout;
    const calm = await withModel(workspace, plain, {}, async (model) => {
      undisturbed = await train(model);
    });
    const fault = { fault: "exit", faultAt: 9, faultOnce: workspace.path(`died ${name}`) };
    const struck = await withModel(workspace, layout, fault, async (model) => {
      expect(await train(model)).toEqual(undisturbed);
    });
    expect(lossesIn(struck)).toEqual(lossesIn(calm));
    expect(struck.filter(({ kind }) => kind === "actor.restarted").length).toBeGreaterThan(0);
    expect(struck).toContainEqual(expect.objectContaining({ kind: "run.restored", from }));
    expect(liveRefs()).toBe(0);
  });

  it("answers each call once, though the rank died while none was made", async () => {
    const layout: RuntimeOptions = { ranks: 2, zero: 1, placement: "process" };
    const events = await withModel(workspace, layout, {}, async (model, runtime) => {
      void model.accumulate("loss", rangeAt(0));
      await model.step();
      const { promise: restored, resolve } = Promise.withResolvers<void>();
      runtime.events$.subscribe(({ kind }) => kind === "run.restored" && resolve());
      process.kill(runtime.inspect().find(({ actor }) => actor === "rank-1")?.pid as number, "SIGKILL");
      await restored;
      await expect(model.load(workspace.path("nothing"))).rejects.toMatchObject({
        code: "CHECKPOINT_MISSING",
      });
      void model.accumulate("loss", rangeAt(1));
      expect(await model.step()).toMatchObject({ step: 2 });
    });
    expect(events.filter(({ kind }) => kind === "run.restored")).toHaveLength(1);
  });
});
