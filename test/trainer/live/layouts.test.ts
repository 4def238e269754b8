import { afterAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions, Tensor } from "../../../src/entries/index.ts";
import { lossesOf, Workspace } from "../../fixtures/run-tiny.ts";
import { batchSize, dataset, lossesIn, rangeAt, SEED, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 3;

const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
  ["processes at level 3", { ranks: 2, zero: 3, placement: "process" }, {}],
  [
    "processes that reach each other by sockets",
    { ranks: 2, zero: 1, placement: "process", carrier: "gloo" },
    {},
  ],
  ["float16 with a loss scale, at level 2", { ranks: 2, zero: 2, precision: "fp16" }, {}],
  ["ranks that split the sequence too", { ranks: 2, tp: 2, sequenceParallel: true }, {}],
  [
    "2 stages of 2 chunks",
    { ranks: 2, pp: 2, schedule: "interleaved", chunks: 2 },
    { layers: 4, accumulation: 2 },
  ],
  ["experts spread over ranks", { ranks: 2, ep: 2 }, { experts: 2 }],
  [
    "everything offloaded",
    {
      ranks: 2,
      zero: 3,
      recompute: true,
      offload: { optimizer: "nvme", activations: "nvme", dir: workspace.folder },
    },
    {},
  ],
  ["stages of replicas", { ranks: 4, pp: 2, zero: 1 }, { accumulation: 2 }],
];

describe("a live model trains as a run does, to the bit, and gives the rows of one rank", () => {
  it.each(layouts)("on %s", async (_, layout, config) => {
    const data = await dataset(workspace);
    const samples = data.batch("train", 40, batchSize) as { inputIds: Tensor; targets: Tensor };
    const ofRun = await lossesOf(workspace, { ...layout, seed: SEED, steps }, config);
    const rows: Tensor[] = [];
    // Experts take what fits of a micro-batch: it is as large as a replica's.
    const ofOneRank = config.experts === undefined ? config : { ...config, accumulation: 2 };
    for (const [each, settings] of [
      [layout, config],
      [{ ranks: 1 }, ofOneRank],
    ] as const) {
      const events = await withModel(workspace, each, settings, async (model) => {
        rows.push((await model.call("logProbs", samples)).rows.logProbs);
        for (let step = 0; step < steps; step++) {
          const batch = data.batch("train", step * batchSize, batchSize) as typeof samples;
          void model.accumulate("loss", step === 1 ? rangeAt(step) : batch);
          await model.step();
        }
      });
      if (each === layout) expect(lossesIn(events)).toEqual(ofRun);
    }
    const [found, ofOne] = rows as [Tensor, Tensor];
    const tolerance = layout.precision === "fp16" ? 2e-2 : 1e-4;
    expect(found.to("float32").allclose(ofOne, tolerance, tolerance)).toBe(true);
    expect(liveRefs()).toBe(0);
  });
});

describe("a model with experts writes what it does on one rank", () => {
  const prompts = [[40, 41, 7, 9, 11, 23, 5], [42], [3, 4, 5, 6]];
  const asked = { maxNewTokens: 9, samples: 2, seed: 3, temperature: 1 };

  it("where experts are spread or replayed, and where layers are split or cut", async () => {
    const written: (readonly (readonly number[])[])[] = [];
    const spread: readonly RuntimeOptions[] = [
      { ranks: 1 },
      { ranks: 2, ep: 2, graph: "exact" },
      { ranks: 2, tp: 2 },
      { ranks: 2, pp: 2, zero: 1 },
    ];
    for (const layout of spread)
      await withModel(workspace, layout, { experts: 2 }, async (model) => {
        const texts = await model.generate(prompts, asked);
        written.push(texts.map(({ tokens }) => tokens));
      });
    for (const texts of written) expect(texts).toEqual(written[0]);
  });
});
