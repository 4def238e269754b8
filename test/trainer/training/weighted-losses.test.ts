import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EventOf, RuntimeOptions } from "../../../src/entries/index.ts";
import { FEATURES, featureAt, LEARNING_RATE, LENGTH, lossNames, weights } from "../../fixtures/exact.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const exactJob = new URL("../../fixtures/jobs/exact.ts", import.meta.url);
const raggedJob = new URL("../../fixtures/jobs/ragged.ts", import.meta.url);

/** One rank's sums of twice the rows are rounded elsewhere: of losses near 5, two units in float32's last place. */
const TOLERANCE_NATS = 1e-6;

/** Some hundred times what a number below 1,000 is rounded by in float64, and a millionth of that in float32. */
const FLOAT64_ROUNDING = 1e-11;

type Settings = readonly [options: RuntimeOptions, config?: Readonly<Record<string, unknown>> | undefined];

/** Eight samples a step, of which every way of dealing makes other micro-batches. */
const HALVES: (readonly [RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
  [{ ranks: 2 }, {}],
  [{ ranks: 2, zero: 1 }, {}],
  [{ ranks: 2, zero: 2 }, {}],
  [{ ranks: 2, zero: 3 }, {}],
  [{ ranks: 2, pp: 2 }, { accumulation: 2 }],
];

describe("a step's loss is Σ weight · loss / Σ weight over all micro-batches", () => {
  const workspace = new Workspace();
  const train = ([options, config = {}]: Settings, weigh: string, more: Record<string, unknown> = {}) =>
    lossesOf(workspace, { zero: 0, ...options }, { weigh, ...more, ...config }, raggedJob);

  afterAll(() => workspace[Symbol.dispose]());

  describe("weighed by the targets that count", () => {
    let one: readonly number[] = [];
    let halves: readonly number[] = [];

    beforeAll(async () => {
      one = await train([{ ranks: 1 }], "targets");
      halves = await train([{ ranks: 1 }, { accumulation: 2 }], "targets");
    });

    it("is that of one rank with the complete batch, to float32's rounding", async () => {
      expectWithin(halves, one);
      expectWithin(await train([{ ranks: 2, tp: 2 }], "targets"), one);
    });

    it.each(HALVES)(
      "has the bits of the same micro-batches on one rank with %o, %o",
      async (options, config) => {
        expect(await train([options, config], "targets")).toEqual(halves);
      },
    );

    it("is not the mean of the micro-batches' means, which is there by its name", async () => {
      const means = await train([{ ranks: 2 }, { perToken: false }], "targets");
      expect(Math.abs((means[1] as number) - (one[1] as number))).toBeGreaterThan(1e-3);
    });
  });

  it("is the same for rows that classes weigh", async () => {
    const one = await train([{ ranks: 1 }], "classes");
    const two = await train([{ ranks: 2, zero: 3 }], "classes");
    expectWithin(two, one);
    expectWithin(await train([{ ranks: 2, tp: 2 }, { accumulation: 2 }], "classes"), one);
    expect(await train([{ ranks: 2, pp: 2 }, { accumulation: 2 }], "classes")).toEqual(two);
  });

  it("weighs each named loss by its own weight, the auxiliary loss of experts among them", async () => {
    const experts = { experts: 4 };
    const halves = await train([{ ranks: 1 }, { accumulation: 2 }], "each loss", experts);
    for (const [options, config] of [
      [{ zero: 3 }],
      [{ ep: 2 }],
      [{ pp: 2 }, { accumulation: 2 }],
    ] as Settings[])
      expect(await train([{ ranks: 2, ...options }, config], "each loss", experts)).toEqual(halves);
    expectWithin(await train([{ ranks: 2, tp: 2 }, { accumulation: 2 }], "each loss", experts), halves);
  });

  it("is that of one rank with the complete batch too, for experts that take all tokens and share each sequence's evenly", async () => {
    const experts = { experts: 4, bySequence: true };
    const one = await train([{ ranks: 1 }], "each loss", experts);
    const two = await train([{ ranks: 2, zero: 3 }], "each loss", experts);
    expectWithin(two, one);
    for (const [options, config] of [
      [{ ranks: 1 }, { accumulation: 2 }],
      [{ ranks: 2, ep: 2 }],
      [{ ranks: 2, pp: 2 }, { accumulation: 2 }],
    ] as Settings[])
      expect(await train([options, config], "each loss", experts)).toEqual(two);
  });

  it("changes no bit where all weigh alike, whatever the precision", async () => {
    for (const [options, config] of [
      [{ ranks: 2 }],
      [{ ranks: 2, precision: "fp16", recompute: true }, { accumulation: 2 }],
      [{ ranks: 2, ep: 2 }, { experts: 4 }],
    ] as Settings[]) {
      const alike = await train([options, { ...config }], "alike");
      expect(await train([options, { ...config, perToken: false }], "alike")).toEqual(alike);
    }
  });
});

describe("a loss and its gradients that are exact but for float64's rounding", () => {
  const workspace = new Workspace();
  const expected = exactSteps(6);

  afterAll(() => workspace[Symbol.dispose]());

  it.each<readonly [RuntimeOptions, Readonly<Record<string, unknown>>]>([
    [{ ranks: 1, zero: 0 }, {}],
    [{ ranks: 1, zero: 0 }, { accumulation: 2 }],
    [{ ranks: 2, zero: 0 }, {}],
    [{ ranks: 2, zero: 3 }, {}],
    [{ ranks: 2, zero: 0, pp: 2 }, { accumulation: 2 }],
  ])(
    "are those of Σ weight · loss / Σ weight by hand, of three losses, with %o, %o",
    async (options, config) => {
      const { events, error } = await runTiny(workspace, options, config, exactJob);
      expect(error).toBeUndefined();
      const steps = events.filter((event) => event.kind === "step.finished");
      expect(steps).toHaveLength(expected.length);
      for (const [index, { lossNats, losses }] of steps.entries()) {
        const { total, byName } = expected[index] as (typeof expected)[number];
        for (const [reported, wanted] of [
          [lossNats, total],
          ...lossNames.map((name) => [losses?.[name], byName[name]]),
        ])
          expect(Math.abs((reported ?? Number.NaN) - (wanted as number))).toBeLessThan(FLOAT64_ROUNDING);
      }
    },
  );
});

describe("figures of weighted losses in a run's events", () => {
  const workspace = new Workspace();
  const train = async (...[options, config = {}]: Settings) => {
    const { events, error } = await runTiny(workspace, { zero: 0, ...options }, config, raggedJob);
    if (error !== undefined) throw error;
    return {
      steps: events.filter((event) => event.kind === "step.finished"),
      evaluations: events.filter((event) => event.kind === "evaluation.finished"),
    };
  };

  afterAll(() => workspace[Symbol.dispose]());

  it("is each loss by its name, samples always, and the tokens that the dataset counts", async () => {
    const config = { experts: 4, weigh: "each loss", steps: 2, evaluateEvery: 2 };
    const { steps, evaluations } = await train({ ranks: 2 }, config);
    for (const event of [...steps, ...evaluations]) {
      const { crossEntropy = 0, auxiliary = 0 } = event.losses ?? {};
      expect(Math.abs(crossEntropy + auxiliary - event.lossNats)).toBeLessThan(TOLERANCE_NATS);
      expect(auxiliary).toBeGreaterThan(0.1);
    }
    // Samples 0 to 7 have 7 · sample mod 16 targets that count, and every fifth has none.
    expect(steps[0]).toMatchObject({ numSamples: 8, numTokens: 7 + 14 + 5 + 12 + 10 + 1 });
    expect(evaluations[0]).toMatchObject({ split: "validation", numSamples: 11 });
  });

  it("is what a loss logs, in the mean that its weights make", async () => {
    const { steps } = await train({ ranks: 2 }, { steps: 1 });
    // The second replica has the targets of samples 4, 6 and 7 of the 49 that count.
    expect(steps[0]?.metrics).toEqual({ replica: expect.closeTo(23 / 49, 12) });
  });

  it("is the same evaluation however its samples are dealt", async () => {
    const config = { steps: 1, evaluateEvery: 1 };
    const one = await train({ ranks: 1 }, config);
    const two = await train({ ranks: 2 }, { ...config, accumulation: 2 });
    expectWithin(lossesIn(two.evaluations), lossesIn(one.evaluations));
    expect(two.evaluations[0]?.numTokens).toBe(one.evaluations[0]?.numTokens);
  });

  it("is a loss of 0 and no update for a step in which nothing counts, and finite losses after it", async () => {
    const { steps } = await train({ ranks: 2 }, { emptyFrom: 8, emptyTo: 16 });
    expect(steps[1]).toMatchObject({ lossNats: 0, gradientNorm: 0, numTokens: 0, skipped: false });
    expect(steps.map(({ lossNats }) => Number.isFinite(lossNats))).toEqual([true, true, true, true]);
    expect(steps[2]?.lossNats).toBeGreaterThan(1);
  });

  it.each([
    ["negative", /expected weigh to give finite numbers of at least 0, got -1/],
    [
      "another loss",
      /expected weigh to give a weight for the job's one loss, which has no name, got weights for labels/,
    ],
  ])("is a refusal of weights that are %s", async (weigh, message) => {
    await expect(train({ ranks: 1 }, { weigh })).rejects.toThrow(message);
  });
});

function lossesIn(events: readonly Pick<EventOf<"step.finished">, "lossNats">[]): number[] {
  return events.map(({ lossNats }) => lossNats);
}

function expectWithin(losses: readonly number[], expected: readonly number[]): void {
  expect(losses).toHaveLength(expected.length);
  const differences = losses.map((loss, step) => Math.abs(loss - (expected[step] ?? Number.NaN)));
  expect(Math.max(...differences)).toBeLessThanOrEqual(TOLERANCE_NATS);
}

/** The losses of eight samples a step of the model in test/fixtures/exact.ts, by hand: linear, so that no gradient depends on a parameter. */
function exactSteps(numSteps: number): { total: number; byName: Record<string, number> }[] {
  const slope = Array.from({ length: FEATURES }, () => 1);
  let offset = 1;
  return Array.from({ length: numSteps }, (_, step) => {
    const byName: Record<string, number> = {};
    const gradient = slope.map(() => 0);
    for (const name of lossNames) {
      let [sum, of] = [0, 0];
      const sums = slope.map(() => 0);
      for (let sample = 8 * step; sample < 8 * (step + 1); sample++)
        for (let position = 0; position < LENGTH; position++) {
          const weight = weights[name](sample, position);
          const row = slope.map((_, feature) => featureAt(sample, position, feature));
          // Two blocks have the same slope, each its own.
          const score = row.reduce((total, x, feature) => total + 2 * x * (slope[feature] as number), offset);
          sum += weight * score;
          of += weight;
          for (const [feature, x] of row.entries()) sums[feature] = (sums[feature] as number) + weight * x;
        }
      byName[name] = sum / of;
      for (const [feature, each] of sums.entries())
        gradient[feature] = (gradient[feature] as number) + each / of;
    }
    for (const [feature, each] of gradient.entries())
      slope[feature] = (slope[feature] as number) - LEARNING_RATE * each;
    offset -= LEARNING_RATE * lossNames.length;
    return { total: Object.values(byName).reduce((sum, each) => sum + each), byName };
  });
}
