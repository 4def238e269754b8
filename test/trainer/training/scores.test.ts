import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { CLASS_WEIGHTS, labelOf, pointOf } from "../../fixtures/labelled-points.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const classifierJob = new URL("../../fixtures/jobs/classifier.ts", import.meta.url);

/** Steps of the job's defaults. */
const STEPS = 5;
const BATCH = 12;
const LEARNING_RATE = 0.5;

describe("a classifier whose dataset scores it", () => {
  const workspace = new Workspace();
  const train = async (options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}) => {
    const { events, losses, error } = await runTiny(
      workspace,
      { zero: 0, ...options },
      config,
      classifierJob,
    );
    if (error !== undefined) throw error;
    const evaluations = events.filter((event) => event.kind === "evaluation.finished");
    return { losses, scores: evaluations.map((event) => event.metrics) };
  };

  afterAll(() => workspace[Symbol.dispose]());

  it("has the same scores on 1, 2 and 3 ranks, with every sample's row once and in its place", async () => {
    const { scores } = await train({ ranks: 1 });
    const held = [13, 5, 13, 5, 13, 5]; // samples of the two splits, after steps 2, 4 and 5
    expect(scores).toMatchObject(held.map((rows) => ({ rows, inOrder: 1, isTest: Number(rows === 5) })));
    // Labels follow from the points, so that some are learnt; what cannot be told apart at first is not.
    expect(scores.at(-1)?.accuracy).toBeGreaterThan(0.5);
    for (const ranks of [2, 3]) expect((await train({ ranks })).scores).toEqual(scores);
    expect((await train({ ranks: 2, placement: "process" }, { accumulation: 3 })).scores).toEqual(scores);
  });

  it("has the same scores with layers split over ranks, and blocks over stages", async () => {
    const floors = { floors: 2 };
    const { scores } = await train({ ranks: 1 }, floors);
    expect((await train({ ranks: 2, tp: 2 }, floors)).scores).toEqual(scores);
    expect((await train({ ranks: 2, pp: 2 }, { ...floors, accumulation: 2 })).scores).toEqual(scores);
    expect((await train({ ranks: 4, pp: 2, zero: 3 }, { ...floors, accumulation: 2 })).scores).toEqual(
      scores,
    );
  });

  it("has the losses of the formula in float64, within 1e-6, however its labels are dealt", async () => {
    const expected = softmaxRegression();
    for (const [options, config] of [
      [{ ranks: 1 }, {}],
      [{ ranks: 3 }, { accumulation: 2 }],
    ] as const) {
      const { losses } = await train(options, config);
      const differences = losses.map((loss, step) => Math.abs(loss - (expected[step] ?? Number.NaN)));
      expect(losses).toHaveLength(STEPS);
      expect(Math.max(...differences)).toBeLessThan(1e-6);
    }
  });

  it.each([
    ["unscored", /expected a dataset that scores what the job predicts, got points without score/],
    ["ragged", /expected "guesses" to have a row for each of 12 samples, got shape \[1\]/],
  ])("is refused where its rows are %s", async (rows, message) => {
    await expect(train({ ranks: 1 }, { rows })).rejects.toThrow(message);
  });
});

/**
 * Losses of the classifier without floors before each step: Σ w · −log p / Σ w over the labels of the step, in float64, with
 * plain gradient descent from zero.
 */
function softmaxRegression(): number[] {
  let weights = CLASS_WEIGHTS.map(() => pointOf(0).map(() => 0)); // [C, D]
  return Array.from({ length: STEPS }, (_, step) => {
    const samples = Array.from({ length: BATCH }, (_, index) => step * BATCH + index);
    const rows = samples.filter((sample) => labelOf(sample) >= 0).map((sample) => rowOf(sample, weights));
    const total = sum(rows.map(({ weight }) => weight));
    weights = weights.map((row, index) =>
      row.map((value, dim) => {
        const gradient = sum(rows.map(({ errors, point }) => (errors[index] ?? 0) * (point[dim] ?? 0)));
        return value - (LEARNING_RATE * gradient) / total;
      }),
    );
    return sum(rows.map(({ loss }) => loss)) / total;
  });
}

/** A sample's part of the sums, with the gradient of its loss by the logits. */
function rowOf(sample: number, weights: readonly (readonly number[])[]) {
  const [point, label] = [pointOf(sample), labelOf(sample)];
  const weight = CLASS_WEIGHTS[label] ?? 0;
  const logits = weights.map((row) => sum(row.map((value, dim) => value * (point[dim] ?? 0))));
  const partition = sum(logits.map(Math.exp));
  return {
    point,
    weight,
    loss: weight * (Math.log(partition) - (logits[label] ?? 0)),
    errors: logits.map((logit, index) => weight * (Math.exp(logit) / partition - Number(index === label))),
  };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
