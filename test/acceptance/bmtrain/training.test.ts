// BMTrain's tests of complete training runs; it compares statistics of parameters to 1e-2, here they are equal to the bit.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noGrad, type RuntimeOptions, scope } from "../../../src/entries/index.ts";
import { materialize } from "../../../src/entries/nn.ts";
import { gpt, tokens } from "../../fixtures/acceptance/gpt.ts";
import { gradientsOf, parametersOf, type Trained, train } from "../../fixtures/acceptance/train.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/acceptance/gpt.ts", import.meta.url);
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

let numRuns = 0;
const run = (options: RuntimeOptions, config: Readonly<Record<string, unknown>>) =>
  train(job, workspace.path(`run-${numRuns++}`), options, config);

// BMTrain test training.
describe("a GPT with dropout trains to the same losses and parameters", () => {
  const steps = 3;
  const config = { lr: 1e-2, dropout: 0.1, batch: 4 };
  let plain: Trained;

  /** @returns runs that must be equal to the bit */
  const both = async (precision: RuntimeOptions["precision"] & string): Promise<[Trained, Trained]> => [
    await run({ ranks: 2, zero: 0, steps, precision }, config),
    await run({ ranks: 1, accumulation: 2, zero: 3, recompute: true, steps, precision }, config),
  ];

  async function expectEqual([one, other]: readonly [Trained, Trained]): Promise<void> {
    expect(one.losses).toHaveLength(steps);
    expect(other.losses).toEqual(one.losses);
    expect(await parametersOf(other, steps)).toEqual(await parametersOf(one, steps));
  }

  beforeAll(async () => {
    plain = await run({ ranks: 2, zero: 0, steps }, config);
  });

  it("in float32: complete or sharded, kept or recomputed, on two ranks or accumulated on one", async () => {
    expect(plain.losses[0]).not.toBe(plain.losses[1]);
    await expectEqual([plain, await run({ ranks: 2, zero: 3, recompute: true, steps }, config)]);
    await expectEqual([plain, await run({ ranks: 1, accumulation: 2, zero: 2, steps }, config)]);
  });

  it.each(["bf16", "amp-bf16"] as const)("in %s, and near float32", async (precision) => {
    const [one, other] = await both(precision);
    await expectEqual([one, other]);
    for (const [step, loss] of one.losses.entries()) {
      // BMTrain's own tolerance.
      expect(Math.abs(loss - (plain.losses[step] ?? Number.NaN))).toBeLessThan(1e-2);
    }
  });
});

// BMTrain test training: a hundred steps, in half precision and with offloading.
describe("a GPT trained for a hundred steps", () => {
  const steps = 100;
  // While the scale comes down from 2 ** 20 updates are skipped, each worth a learning rate of difference.
  const config = { lr: 2e-4, batch: 4, layers: 2 };

  /** Mean, deviation and extremes of each parameter, which BMTrain compares. */
  function statistics(values: Float32Array): number[] {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    return [mean, Math.sqrt(variance), Math.max(...values), Math.min(...values)];
  }

  const runLong = async (name: string, options: RuntimeOptions) => {
    const dir = workspace.path(name);
    const checkpoint = { dir, everySteps: steps };
    const long = await train(job, dir, { ranks: 2, zero: 3, steps, ...options, checkpoint }, config);
    return { losses: long.losses, parameters: await parametersOf(long, steps) };
  };

  it("in float16 under a loss scale is the same with offloaded optimizer state, and near float32", async () => {
    const lossScale = { kind: "bmtrain", scale: 2 ** 20 } as const;
    const half = await runLong("half", { precision: "fp16", lossScale });
    const offloaded = await runLong("offloaded", {
      precision: "fp16",
      lossScale,
      recompute: true,
      offload: { optimizer: "host" },
    });
    const plain = await runLong("plain", {});
    expect(offloaded.losses).toHaveLength(steps);
    expect(offloaded).toEqual(half);
    expect(plain.losses[steps - 1]).toBeLessThan(plain.losses[0] ?? 0);
    for (const [name, values] of plain.parameters) {
      const ofHalf = statistics(half.parameters.get(name) ?? new Float32Array());
      // BMTrain's own tolerance.
      for (const [index, value] of statistics(values).entries())
        expect(Math.abs((ofHalf[index] ?? Number.NaN) - value), name).toBeLessThan(1e-2);
    }
  });
});

describe("without an update", () => {
  const same = { same: true, batch: 4 };
  let plain: Trained;
  /** The same samples four times: on two replicas, twice on each. */
  let repeated: Trained;

  beforeAll(async () => {
    plain = await run({ ranks: 1, steps: 2 }, same);
    const options = { ranks: 2, accumulation: 2, zero: 3, recompute: true };
    repeated = await run(options, { ...same, batch: 16 });
  });

  // BMTrain test grad_accu.
  it("a micro-batch made four times has its gradient four times: their mean is that of one, to the bit", async () => {
    expect(await gradientsOf(repeated, 1)).toEqual(await gradientsOf(plain, 1));
  });

  // BMTrain test dropout.
  it("dropout draws a new mask in every step of training and is off in evaluation", async () => {
    const dropped = await run({ ranks: 2, zero: 3, steps: 2 }, { ...same, dropout: 0.5 });
    expect(plain.losses[1]).toBe(plain.losses[0]);
    expect(dropped.losses[0]).not.toBe(plain.losses[0]);
    expect(dropped.losses[1]).not.toBe(dropped.losses[0]);
    expect(dropped.sample).toBe(plain.sample);
  });

  // BMTrain test model_wrapper: its own compares a model with itself.
  it("the sharded model computes the logits of an untouched copy", () => {
    const copy = gpt({ layers: 2, dropout: 0 }).eval();
    materialize(copy, { seed: 1337 });
    const { inputIds } = tokens(0, 2);
    const expected = noGrad(() => scope(() => copy.forward(inputIds).logits.toTypedArray() as Float32Array));
    const logits = JSON.parse(repeated.sample ?? "[]") as number[];
    expect(logits).toHaveLength(expected.length);
    // The copy computes with another number of threads, which may split a sum elsewhere.
    for (const [index, logit] of logits.entries())
      expect(logit).toBeCloseTo(expected[index] ?? Number.NaN, 6);
  });
});
