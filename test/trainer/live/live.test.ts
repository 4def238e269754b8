import { afterAll, describe, expect, it } from "vitest";
import { Runtime, type RuntimeOptions, type TroupeEvent } from "../../../src/entries/index.ts";
import { lossesOf, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 4;
const batchSize = 4;
const batchAt = (step: number) => ({ split: "train", position: step * batchSize, numSamples: batchSize });

const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
  ["one rank", { ranks: 1 }, { dropout: 0.1 }],
  ["2 replicas", { ranks: 2, zero: 0 }, { dropout: 0.1 }],
  ["2 ranks that split layers", { ranks: 2, tp: 2 }, {}],
  ["2 stages, accumulating", { ranks: 2, pp: 2 }, { accumulation: 2 }],
  ["2 ranks at level 3", { ranks: 2, zero: 3 }, { clipNorm: 0 }],
];

describe("a live model", () => {
  it.each(layouts)(
    "has the losses of a run, whether its script awaits or not: %s",
    async (_, layout, config) => {
      const ofRun = await lossesOf(workspace, { ...layout, steps }, config);
      for (const waits of [true, false]) {
        const events: TroupeEvent[] = [];
        await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...layout });
        runtime.events$.subscribe((event) => events.push(event));
        const given = { data: workspace.text, cache: workspace.path("cache"), ...config };
        const model = await runtime.open(tinyJob, given);
        const losses: Promise<number>[] = [];
        for (let step = 0; step < steps; step++) {
          const told = model.accumulate("loss", batchAt(step));
          if (waits) await told;
          const made = model.step();
          losses.push(made.then(({ lossNats }) => lossNats));
          expect(await told).toEqual({ lossNats: (await made).lossNats });
        }
        expect(await Promise.all(losses)).toEqual(ofRun);
        await model.close();
        expect(events.flatMap((event) => (event.kind === "step.finished" ? event.lossNats : []))).toEqual(
          ofRun,
        );
      }
    },
  );
});
