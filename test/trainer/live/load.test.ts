import { rmSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { saveHuggingFaceFolder } from "../../../src/library/checkpoint/index.ts";
import { tensorBytes } from "../../../src/library/models/index.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { lossesIn, type Policy, rangeAt, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

/** Makes steps. @returns their losses */
async function train(model: Policy, from: number, to: number): Promise<readonly number[]> {
  const losses: Promise<{ readonly lossNats: number }>[] = [];
  for (let step = from; step < to; step++) {
    void model.accumulate("loss", rangeAt(step));
    losses.push(model.step({ lr: 1e-2 / (step + 1) }));
  }
  return (await Promise.all(losses)).map(({ lossNats }) => lossNats);
}

/** Three steps of a model of one rank, whose state is saved, and three more. */
const saved = (async () => {
  let later: readonly number[] = [];
  let path = "";
  const layout: RuntimeOptions = { ranks: 1, checkpoint: { dir: workspace.path("one rank") } };
  await withModel(workspace, layout, {}, async (model) => {
    await train(model, 0, 3);
    path = (await model.save({ as: "three" })).path;
    later = await train(model, 3, 6);
  });
  return { path, later };
})();

describe("a state that a script loads", () => {
  const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
    ["replicas", { ranks: 2, zero: 3 }, {}],
    ["split layers", { ranks: 2, tp: 2 }, {}],
    ["stages", { ranks: 2, pp: 2 }, { accumulation: 2 }],
    [
      "processes, with state that is offloaded",
      { ranks: 2, zero: 2, placement: "process", offload: { optimizer: "host" } },
      {},
    ],
  ];

  it.each(layouts)(
    "is that of the checkpoint, whatever the model did before: %s",
    async (_, layout, config) => {
      const { path, later } = await saved;
      await withModel(workspace, layout, config, async (model) => {
        void train(model, 7, 9);
        const loaded = model.load(path);
        const losses = await train(model, 3, 6);
        for (const [index, loss] of losses.entries()) expect(loss).toBeCloseTo(later[index] as number, 5);
        expect(await loaded).toEqual({ step: 3 });
      });
      expect(liveRefs()).toBe(0);
    },
  );

  it("is loaded again when a rank dies, to the same bits", async () => {
    const { path, later } = await saved;
    for (const checkpoint of [{ inMemoryEverySteps: 100 }, { inMemoryEverySteps: 2 }]) {
      const faultOnce = workspace.path(`died ${checkpoint.inMemoryEverySteps}`);
      const fault = { fault: "exit", faultRank: 0, faultAt: 1, faultOnce };
      const events = await withModel(workspace, { ranks: 1, checkpoint }, fault, async (model) => {
        void train(model, 7, 8);
        void model.load(path);
        expect(await train(model, 3, 6)).toEqual(later);
      });
      // The load, the death, and the load again.
      expect(events.filter(({ kind }) => kind === "run.restored")).toHaveLength(3);
      expect(lossesIn(events).slice(2)).toEqual(later);
    }
  });

  it("may be the weights of another program, with moments zero", async () => {
    const folder = workspace.path("weights");
    let first: readonly number[] = [];
    await withModel(workspace, { ranks: 1 }, {}, async (model) => {
      const weights = await model.parameters();
      await saveHuggingFaceFolder(folder, {
        config: {},
        weights: Object.entries(weights).map(([name, tensor]) => tensorBytes(name, tensor)),
      });
      first = await train(model, 0, 3);
      await model.load(folder);
      expect(await train(model, 0, 3)).toEqual(first);
    });
  });

  it("is refused in one sentence where it does not fit, and the model goes on as if it had not been asked", async () => {
    const { path } = await saved;
    writeFileSync(workspace.path("no folder"), "");
    const calm = lossesIn(
      await withModel(workspace, { ranks: 1 }, {}, async (model) => void (await train(model, 0, 4))),
    );
    const events = await withModel(workspace, { ranks: 1 }, {}, async (model) => {
      await train(model, 0, 2);
      const missing = model.load(workspace.path("nothing"));
      const step = train(model, 2, 3);
      await expect(missing).rejects.toMatchObject({ code: "CHECKPOINT_MISSING" });
      await step;
      // @ts-expect-error: a path is text
      await expect(model.load(undefined)).rejects.toThrow(
        "[load] expected the path of a folder, got undefined",
      );
      void model.accumulate("loss", rangeAt(3));
      await expect(model.load(path)).rejects.toThrow(
        "[load] expected a step for all that was accumulated, got none (call step before)",
      );
      expect(await model.step({ lr: 1e-2 / 4 })).toMatchObject({ step: 4 });
      model.report({ round: 0, texts: [[1]], rewards: [1] });
    });
    expect(lossesIn(events)).toEqual(calm);
    expect(events.filter(({ kind }) => kind === "rollouts.judged")).toMatchObject([{ step: 4 }]);
    expect(events.some(({ kind }) => kind === "run.restored")).toBe(false);
    await withModel(workspace, { ranks: 1 }, { layers: 3 }, async (model) => {
      await expect(model.load(path)).rejects.toMatchObject({ code: "RESUME_MISMATCH" });
    });
  });

  it("ends the model if it must be loaded again and is gone", async () => {
    const own = workspace.path("own");
    await withModel(workspace, { ranks: 1, checkpoint: { dir: own } }, {}, async (model) => {
      await train(model, 0, 1);
    });
    const fault = { fault: "exit", faultRank: 0, faultAt: 1, faultOnce: workspace.path("died late") };
    const lost = withModel(workspace, { ranks: 1 }, fault, async (model) => {
      await model.load(own);
      await train(model, 1, 2);
      rmSync(own, { recursive: true });
      await train(model, 2, 3);
    });
    await expect(lost).rejects.toMatchObject({ code: "CALLS_LOST" });
  });
});
