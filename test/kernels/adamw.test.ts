import { describe, expect, it } from "vitest";
import { empty, ops, setNumThreads, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectNear, expectSame, floatTypes, normal } from "./inputs.ts";

interface Recipe {
  readonly rate: number;
  readonly decay: number;
}

const beta1 = 0.9;
const beta2 = 0.95;
const eps = 1e-8;

/** The formulas of torch.optim.AdamW, one tensor operation after the other, in the dtype of `param`. */
function reference(
  param: Tensor,
  m: Tensor,
  v: Tensor,
  gradient: Tensor,
  recipe: Recipe,
  step: number,
): void {
  param.mul_(1 - recipe.rate * recipe.decay);
  m.mul_(beta1).add_(gradient.mul(1 - beta1));
  v.mul_(beta2).add_(gradient.mul(gradient).mul(1 - beta2));
  const denominator = v
    .sqrt()
    .div(Math.sqrt(1 - beta2 ** step))
    .add(eps);
  param.sub_(m.div(denominator).mul(recipe.rate / (1 - beta1 ** step)));
}

class State {
  readonly param: Tensor;
  readonly m: Tensor;
  readonly v: Tensor;

  constructor(param: Tensor, m: Tensor = zeros(param.shape), v: Tensor = zeros(param.shape)) {
    this.param = param;
    this.m = m;
    this.v = v;
  }

  /** One segment over the complete tensor by default. */
  step(
    gradient: Tensor,
    step: number,
    options: { low?: Tensor; scale?: number; ends?: number[]; recipes?: Recipe[] } = {},
  ): void {
    const recipes = options.recipes ?? [{ rate: 1e-2, decay: 0.1 }];
    ops.troupe.adamw_(
      this.param,
      this.m,
      this.v,
      gradient,
      options.low,
      options.ends ?? [this.param.numel],
      recipes.map((recipe) => recipe.rate),
      recipes.map((recipe) => recipe.decay),
      beta1,
      beta2,
      eps,
      step,
      options.scale ?? 1,
    );
  }

  /** The part [begin, end) of the same memory. */
  slice(begin: number, end: number): State {
    const part = (t: Tensor) => t.narrow(0, begin, end - begin);
    return new State(part(this.param), part(this.m), part(this.v));
  }
}

describe("adamw_", () => {
  it.each([0, 1, 15, 1023, 1025])(
    "follows torch.optim.AdamW's formulas over five steps of %i elements",
    (numel) => {
      const ours = new State(normal([numel], 0));
      const exact = [ours.param, ours.m, ours.v].map((t) => t.to("float64")) as [Tensor, Tensor, Tensor];
      for (let step = 1; step <= 5; step++) {
        const gradient = normal([numel], step);
        ours.step(gradient, step);
        reference(...exact, gradient.to("float64"), { rate: 1e-2, decay: 0.1 }, step);
      }
      expectNear(ours.param, exact[0], 1e-6);
      expectNear(ours.m, exact[1], 1e-6);
      expectNear(ours.v, exact[2], 1e-6);
    },
  );

  it.each(floatTypes)("takes a gradient of %s and scales it first", (dtype) => {
    const gradient = normal([1025], 1, { dtype });
    const scaled = new State(normal([1025], 0));
    scaled.step(gradient, 1, { scale: 0.25 });
    const plain = new State(normal([1025], 0));
    plain.step(gradient.to("float32").mul(0.25), 1);
    expectSame(scaled.param, plain.param);
    expectSame(scaled.v, plain.v);
  });

  it.each(["bfloat16", "float16"] as const)(
    "writes the new parameters in %s, rounded to nearest",
    (dtype) => {
      const state = new State(normal([1025], 0));
      const low = empty([1025], { dtype });
      state.step(normal([1025], 1), 1, { low });
      expectSame(low, state.param.to(dtype));
    },
  );

  it("gives each segment its own rate and decay, empty ones too", () => {
    const recipes = [
      { rate: 1e-2, decay: 0 },
      { rate: 1, decay: 1 },
      { rate: 3e-3, decay: 0.2 },
    ];
    const whole = new State(normal([1000], 0));
    whole.step(normal([1000], 1), 1, { ends: [333, 333, 1000], recipes });
    const first = new State(normal([1000], 0)).slice(0, 333);
    first.step(normal([1000], 1).narrow(0, 0, 333), 1, { recipes: recipes.slice(0, 1) });
    const last = new State(normal([1000], 0)).slice(333, 1000);
    last.step(normal([1000], 1).narrow(0, 333, 667), 1, { recipes: recipes.slice(2) });
    expectSame(whole.param, ops.cat([first.param, last.param]));
  });

  it("gives the same bits for every split of the buffer and every number of threads", () => {
    const numel = 200_003;
    const gradient = normal([numel], 1);
    const whole = new State(normal([numel], 0));
    setNumThreads(1);
    whole.step(gradient, 1);
    const split = new State(normal([numel], 0));
    setNumThreads(2);
    for (const [begin, end] of [
      [0, 7],
      [7, 100_001],
      [100_001, numel],
    ] as const) {
      split.slice(begin, end).step(gradient.narrow(0, begin, end - begin), 1);
    }
    setNumThreads(1);
    expectSame(split.param, whole.param);
    expectSame(split.v, whole.v);
  });

  it("passes a NaN gradient on to its own element only", () => {
    const gradient = normal([40], 1);
    gradient.narrow(0, 17, 1).fill_(Number.NaN);
    const state = new State(normal([40], 0));
    state.step(gradient, 1);
    expect(numbers(state.param).map(Number.isNaN)).toEqual(Array.from({ length: 40 }, (_, i) => i === 17));
  });

  it.each([
    ["a gradient of another length", () => new State(zeros(4)).step(zeros(5), 1), "grad to be"],
    [
      "a gradient of integers",
      () => new State(zeros(4)).step(zeros(4, { dtype: "int64" }), 1),
      "grad to be float32",
    ],
    ["step 0", () => new State(zeros(4)).step(zeros(4), 0), "steps to count from 1"],
    [
      "segments that end early",
      () => new State(zeros(4)).step(zeros(4), 1, { ends: [3] }),
      "segment_ends to rise",
    ],
    [
      "parameters in bfloat16",
      () => new State(zeros(4, { dtype: "bfloat16" })).step(zeros(4), 1),
      "param to be float32",
    ],
  ])("refuses %s", (_, call, message) => {
    expect(refusal(call)?.message).toContain(message);
  });
});
