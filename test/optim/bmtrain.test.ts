// BMTrain's golden values (Appendices A and B of the reference), and the assertions of its own optimizer tests.
import { describe, expect, it } from "vitest";
import { bindRandomness, Dropout, evaluating, ModuleList, Randomness } from "../../src/compute/nn/index.ts";
import { Adam, AdamW, BMTrainAdam, SGD } from "../../src/compute/optim/index.ts";
import { empty, ones, ops, scope, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";
import { named, type Shapes, shardedSteps, type Values } from "./sharded-steps.ts";

const one: Shapes = { p: { shape: [1], values: [1] } };
const options = { lr: 0.01, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.1 } as const;

/** The true gradients, times the loss scale of 1,024, as a format holds them; the update divides by the scale. */
function gradientsIn(dtype: "float32" | "float16" | "bfloat16"): Values[] {
  return [0.1, -0.2, 0.3, 0.05, 0].map((gradient) => ({
    p: numbers(tensor([gradient * 1024], { dtype: "float32" }).to(dtype)).map((value) => value / 1024),
  }));
}

function steps(form: "half" | "single", dtype: "float32" | "float16" | "bfloat16", more = {}) {
  const spec = new BMTrainAdam(named(one), form, { ...options, ...more });
  return shardedSteps(spec, one, { numRanks: 1, gradients: gradientsIn(dtype), dtype, lossScale: 1024 });
}

const valuesOf = (values: readonly Values[]) => values.map(({ p }) => p?.[0] ?? Number.NaN);

function expectDigits(got: readonly number[], expected: readonly number[], digits: number): void {
  expect(got.map((value) => value.toFixed(digits))).toEqual(expected.map((value) => value.toFixed(digits)));
}

describe("BMTrain's Adam", () => {
  it("gives the golden values of float16, to the printed digits", () => {
    const { values, narrow, state } = steps("half", "float16");
    expectDigits(
      valuesOf(values),
      [0.9889999628, 0.9916719794, 0.9872466922, 0.9827015996, 0.9787116647],
      10,
    );
    expectDigits(valuesOf(narrow), [0.98876953, 0.99169922, 0.98730469, 0.98291016, 0.978515625], 8);
    expect(state["exp_avg.p"]?.[0]).toBeCloseTo(0.0207858197, 10);
    expect(state["exp_avg_sq.p"]?.[0]).toBeCloseTo(1.4215962e-4, 11);
  });

  it("stays within a float16 moment's rounding of its CUDA kernel, whose state is scaled: ours is not", () => {
    const cuda = [0.9889999628, 0.9916729331, 0.9872482419, 0.9827026129, 0.9787118435];
    // A moment in float16 errs by 2⁻¹¹ of a step, which is at most 0.01.
    valuesOf(steps("half", "float16").values).forEach((value, index) => {
      expect(Math.abs(value - (cuda[index] ?? Number.NaN))).toBeLessThan(0.01 * 2 ** -11);
    });
  });

  it("gives the golden values of bfloat16, rounded to nearest and not truncated", () => {
    const { values, narrow } = steps("half", "bfloat16");
    expectDigits(
      valuesOf(values),
      [0.9889999628, 0.9916719794, 0.9872431755, 0.9826957583, 0.9787038565],
      10,
    );
    expect(valuesOf(narrow)).toEqual([0.98828125, 0.9921875, 0.98828125, 0.984375, 0.98046875]);
  });

  it("gives the golden values of float32, whose decay is added to the gradient", () => {
    const { values } = steps("single", "float32");
    const expected = [0.9900000095, 0.9873751998, 0.9808115959, 0.9739056826, 0.9671008587];
    expectDigits(valuesOf(values), expected, 10);
    const torch = new Adam(named(one), { ...options, decay: "every parameter" });
    const gradients = gradientsIn("float32");
    expect(valuesOf(shardedSteps(torch, one, { numRanks: 1, gradients }).values)).toEqual(valuesOf(values));
  });

  it("is AdamW in half precision but for the order of rounding", () => {
    const adamw = new AdamW(named(one), { ...options, decay: "every parameter" });
    const gradients = gradientsIn("float16");
    const { values } = shardedSteps(adamw, one, { numRanks: 1, gradients });
    valuesOf(values).forEach((value, index) => {
      // Four roundings of float32 near 1.
      expect(Math.abs(value - (valuesOf(steps("half", "float16").values)[index] ?? 0))).toBeLessThan(2.4e-7);
    });
  });

  it("holds the parameters for the same number of updates in both forms, while the moments gather", () => {
    for (const form of ["half", "single"] as const) {
      const { values, state } = steps(form, "float32", { holdSteps: 2 });
      const moved = valuesOf(values).map((value) => value !== 1);
      expect(moved).toEqual([false, false, true, true, true]);
      const gathered = steps(form, "float32", { holdSteps: 5, weightDecay: 0 }).state["exp_avg.p"];
      expect(gathered).toEqual(steps(form, "float32", { weightDecay: 0 }).state["exp_avg.p"]);
      expect(state["exp_avg.p"]?.[0]).not.toBe(0);
    }
  });

  it("maximizes its own parameters if asked to, whatever the other optimizers do", () => {
    const two: Shapes = { p: { shape: [1], values: [1] }, q: { shape: [1], values: [1] } };
    const gradients = gradientsIn("float32").map(({ p }) => ({ p: p ?? [], q: p ?? [] }));
    const up = new BMTrainAdam(named(two), "half", { lr: 0.01, maximize: true, only: /p/ });
    const down = new BMTrainAdam(named(two), "half", { lr: 0.01, only: /q/ });
    const { values } = shardedSteps([up, down], two, { numRanks: 1, gradients });
    expect(values[0]?.p?.[0]).toBeCloseTo(1.01, 6);
    expect(values[0]?.q?.[0]).toBeCloseTo(0.99, 6);
  });

  it("ends a hundred steps of rate 1 alike in every form and precision, as BMTrain's own test asks", () => {
    const numel = 128 * 16 + 1237;
    const random = (stream: number) =>
      numbers(ops.troupe.philoxNormal_(empty([numel]), 0, 1, 2024, stream, 0).to("float16"));
    const model: Shapes = { p: { shape: [numel], values: random(0) } };
    const gradients = Array.from({ length: 100 }, (_, step) => ({ p: random(step + 1) }));
    const names = named(model);
    const run = (spec: BMTrainAdam | Adam | AdamW, dtype: "float32" | "float16" | "bfloat16") =>
      shardedSteps(spec, model, { numRanks: 2, gradients, dtype, lossScale: 4 }).values.at(-1)?.p ?? [];
    const single = run(new BMTrainAdam(names, "single", { lr: 1 }), "float32");
    const torch = run(new Adam(names, { lr: 1 }), "float32");
    const distance = (a: number[], b: number[]) =>
      Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));
    // Its bounds: 0 for float32 against torch, 1 for half precision at a rate of 1.
    expect(distance(single, torch)).toBe(0);
    for (const dtype of ["float16", "bfloat16"] as const) {
      expect(distance(run(new BMTrainAdam(names, "half", { lr: 1 }), dtype), single)).toBeLessThan(1);
    }
  });
});

// Appendix A 18: with torch before 1.12 the float32 path passed step 0, whose bias correction is zero.
describe("step 0", () => {
  it.each([
    ["adamw_", ops.troupe.adamw_],
    ["adam_", ops.troupe.adam_],
    ["bmtrain_adam_", ops.troupe.bmtrainAdam_],
  ] as const)("is refused by %s instead of divided by", (_, step) => {
    const [p, m, v, g] = [zeros([4]), zeros([4]), zeros([4]), zeros([4])];
    expect(() => step(p, m, v, g, undefined, [4], [0.1], [0], 0.9, 0.99, 1e-8, 0, 1)).toThrow(
      /steps to count from 1/,
    );
  });
});

describe("dropout", () => {
  it("of a half through five blocks zeroes some of 32 ones in training and none in evaluation, five times", () => {
    const blocks = new ModuleList(Array.from({ length: 5 }, () => new Dropout(0.5)));
    const randomness = new Randomness(1);
    bindRandomness(blocks, randomness);
    const numZeros = () =>
      scope(() => {
        const out = [...blocks].reduce((x, block) => block.forward(x), ones([32]));
        return numbers(out).filter((value) => value === 0).length;
      });
    for (let round = 0; round < 5; round++) {
      randomness.step = round;
      expect(numZeros()).toBeGreaterThan(0);
      expect(evaluating(blocks, numZeros)).toBe(0);
    }
  });
});

describe("has_inf_nan", () => {
  const sizes = [...Array.from({ length: 99 }, (_, index) => index + 1), 1e3, 1e4, 1e5, 1e6];

  it.each(["float16", "bfloat16", "float32"] as const)(
    "finds what is not finite in %s, at every size",
    (dtype) => {
      for (const numel of sizes) {
        const values = zeros([numel], { dtype });
        const at = (place: number) => values.narrow(0, place, 1);
        const finite = () => ops.troupe.allFinite([values]);
        expect(finite()).toBe(true);
        const place = (numel * 7919) % numel;
        at(place).fill_(Number.POSITIVE_INFINITY);
        expect(finite()).toBe(false);
        at(place).fill_(0);
        expect(finite()).toBe(true);
        at(numel - 1).fill_(Number.NaN);
        expect(finite()).toBe(false);
        at(0).fill_(Number.NEGATIVE_INFINITY);
        expect(finite()).toBe(false);
        (values as Tensor).dispose();
      }
    },
  );
});

describe("another optimizer", () => {
  it("may be named for part of the parameters, as OptimManager takes several", () => {
    const two: Shapes = { p: { shape: [1], values: [1] }, q: { shape: [1], values: [1] } };
    const gradients = gradientsIn("float32").map(({ p }) => ({ p: p ?? [], q: p ?? [] }));
    const specs = [
      new SGD(named(two), { lr: 0.1, only: /q/ }),
      new Adam(named(two), { lr: 0.01, only: /p/ }),
    ];
    const { values } = shardedSteps(specs, two, { numRanks: 2, gradients });
    expect(values[0]?.q?.[0]).toBeCloseTo(0.99, 6);
    expect(values[0]?.p?.[0]).toBeCloseTo(0.99, 6);
  });
});
