import { describe, expect, test } from "vitest";
import {
  bindRandomness,
  dematerialize,
  ExpertMLP,
  Linear,
  MixtureOfExperts,
  type MixtureOptions,
  materialize,
  Randomness,
} from "../../../src/compute/nn/index.ts";
import { empty, grad, ops, scope, type Tensor } from "../../../src/compute/tensor/index.ts";

const values = (x: Tensor) => Array.from(x.to("float64").toTypedArray() as Float64Array);
const random = (shape: number[], stream: number) =>
  ops.troupe.philoxNormal_(empty(shape), 0, 1, 3, stream, 0);
const wide = { kind: "normal", mean: 0, std: 1 } as const;

function mixing(
  options: MixtureOptions,
  body: (mixture: MixtureOfExperts, randomness: Randomness) => void,
): void {
  const mixture = new MixtureOfExperts(6, new ExpertMLP(4, 6, 12, { init: wide }), {
    init: wide,
    ...options,
  });
  const randomness = new Randomness(5);
  bindRandomness(mixture, randomness);
  materialize(mixture, { seed: 1 });
  scope(() => body(mixture, randomness));
  dematerialize(mixture);
}

describe("a mixture of experts", () => {
  test("gives each token its expert's answer times the gate", () => {
    mixing({ dropTokens: false }, (mixture) => {
      const x = random([2, 5, 6], 0);
      const { output, counts } = mixture.eval().forward(x);
      const rows = x.view([10, 6]);
      const gates = ops.linear(rows, mixture.gate.weight.tensor).softmax(1);
      const experts = values(gates.argmax(1));
      const all = mixture.experts.forward(rows.unsqueeze(0).expand([4, 10, 6])); // [E, S, D]
      const expected = experts.map((expert, token) =>
        values(all.select(0, expert).select(0, token).mul(gates.select(0, token).select(0, expert))),
      );
      values(output.view([-1])).forEach(
        (value, index) => void expect(value).toBeCloseTo(expected.flat()[index] ?? Number.NaN, 4),
      );
      expect(values(counts).reduce((sum, count) => sum + count)).toBe(10);
    });
  });

  const noisy: [string, MixtureOptions][] = [
    ["a random sample of tokens", { minCapacity: 1 }],
    ["jitter", { noise: "jitter", randomTokenSelection: false }],
    ["noise on the first choice", { noise: "rsample", randomTokenSelection: false }],
    ["a drawn second choice", { k: 2 }],
  ];
  test.each(noisy)("draws %s as a pure function of the step, and nothing in evaluation", (_, options) => {
    mixing(options, (mixture, randomness) => {
      const x = random([64, 6], 0);
      const run = () => values(mixture.forward(x).output);
      const first = run();
      randomness.restart();
      expect(run()).toEqual(first);
      randomness.step = 1;
      expect(run()).not.toEqual(first);
      mixture.eval();
      const still = run();
      randomness.step = 0;
      expect(run()).toEqual(still);
    });
  });

  test("balances each sequence by itself if asked to: the loss is the mean over sequences", () => {
    mixing({ dropTokens: false, balance: "sequence" }, (mixture) => {
      const x = random([3, 8, 6], 0);
      const lossOf = (part: Tensor) => mixture.eval().forward(part).auxiliaryLoss.item();
      const alone = [0, 1, 2].map((row) => lossOf(x.narrow(0, row, 1)));
      expect(lossOf(x)).toBeCloseTo(alone.reduce((sum, loss) => sum + loss) / 3, 6);
      expect(Math.abs(lossOf(x) - lossOf(x.view([24, 6])))).toBeGreaterThan(1e-3);
    });
  });

  test("uses the capacity factor of its mode", () => {
    mixing(
      { minCapacity: 1, capacityFactor: 0.25, evalCapacityFactor: 4, randomTokenSelection: false },
      (mixture) => {
        const dropped = () =>
          values(
            mixture
              .forward(random([64, 6], 0))
              .output.abs()
              .sum(1),
          ).filter((sum) => sum === 0).length;
        expect(dropped()).toBeGreaterThan(40); // 4 of 64 at each of 4 experts
        mixture.eval();
        expect(dropped()).toBe(0);
      },
    );
  });

  test("weighs the experts' answer against a residual layer's", () => {
    mixing({ residual: new Linear(6, 6), dropTokens: false }, (mixture) => {
      const x = random([3, 6], 0);
      const { output } = mixture.eval().forward(x);
      const { residual, coefficient } = mixture;
      const shares = coefficient?.forward(x).softmax(-1) as Tensor;
      const beside = residual?.forward(x).mul(shares.narrow(1, 1, 1)) as Tensor;
      const gates = ops.linear(x, mixture.gate.weight.tensor).softmax(1);
      const all = mixture.experts.forward(x.unsqueeze(0).expand([4, 3, 6]));
      for (const [token, expert] of values(gates.argmax(1)).entries()) {
        const answer = all.select(0, expert).select(0, token).mul(gates.select(0, token).select(0, expert));
        const expected = answer.mul(shares.select(0, token).select(0, 0)).add(beside.select(0, token));
        expect(output.select(0, token).sub(expected).abs().max().item()).toBeLessThan(1e-4); // float32 sums of values near 10
      }
    });
  });

  test("sends gradients to gate, experts and input", () => {
    mixing({ k: 2 }, (mixture) => {
      const x = random([16, 6], 0).requiresGrad_();
      const { output, auxiliaryLoss } = mixture.forward(x);
      const wanted = [x, ...mixture.parameters().map(({ tensor }) => tensor)];
      for (const gradient of grad(output.sum().add(auxiliaryLoss), wanted)) {
        expect(gradient?.abs().max().item()).toBeGreaterThan(0);
      }
    });
  });

  test.each<[MixtureOptions, string]>([
    [{ k: 3 as never }, "expected 1 or 2 experts per token, got 3"],
    [{ capacityFactor: 0 }, "expected capacity factors that are positive, got 0"],
    [{ minCapacity: 0.5 }, "expected minCapacity to be an integer ≥ 1, got 0.5"],
    [{ noise: "RSample" as never }, 'noise "none", "jitter" or "rsample", got RSample'],
    [{ k: 2, noise: "rsample" }, 'noise "rsample" for k = 1 only'],
  ])("refuses %j", (options, message) => {
    expect(() => new MixtureOfExperts(6, new ExpertMLP(4, 6, 12), options)).toThrow(message);
  });
});
