import { afterEach, describe, expect, it } from "vitest";
import {
  Adafactor,
  Adam,
  AdamW,
  LAMB,
  Lion,
  type LocalState,
  type NamedShapes,
  type OptimizerSpec,
  rateAt,
  releaseState,
  SGD,
  stepLocal,
} from "../../src/compute/optim/index.ts";
import { hold, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { named, type Shapes, shardedSteps, type Values } from "./sharded-steps.ts";

const wave = (numel: number, of: (place: number) => number) =>
  Array.from({ length: numel }, (_, index) => of(index + 1));

/** The shapes on which torch's optimizers were run for {@link torchValues}. */
const small: Shapes = {
  w: { shape: [2, 3], values: wave(6, Math.sin) },
  b: { shape: [3], values: wave(3, Math.cos) },
};
const smallGradients: Values[] = [1, 2, 3].map((step) => ({
  w: wave(6, (place) => Math.sin(place * step) / 2),
  b: wave(3, (place) => Math.cos(place * step) / 2),
}));

const every = { decay: "every parameter" } as const;

/** Three steps of torch.optim 2.13 and of transformers' Adafactor, in float64: w, then b. */
const torchValues: readonly [string, (shapes: NamedShapes) => OptimizerSpec, number[]][] = [
  [
    "torch.optim.AdamW",
    (shapes) => new AdamW(shapes, { lr: 0.01, weightDecay: 0.1, ...every }),
    [
      0.8105528808, 0.8973833634, 0.1309421801, -0.7451728861, -0.9335026462, -0.2492380625, 0.532864993,
      -0.3952344491, -0.974136062,
    ],
  ],
  [
    "torch.optim.Adam",
    (shapes) => new Adam(shapes, { lr: 0.01, weightDecay: 0.1, ...every }),
    [
      0.8125856296, 0.8954883142, 0.1294184329, -0.7439312262, -0.9342593998, -0.2498778551, 0.5310496407,
      -0.3952816705, -0.9734652183,
    ],
  ],
  [
    "torch.optim.Adam that maximizes",
    (shapes) => new Adam(shapes, { lr: 0.01, weightDecay: 0.1, maximize: true, ...every }),
    [
      0.8690217721, 0.9138994975, 0.1488968375, -0.7626317832, -0.9785961183, -0.3085628975, 0.5427606955,
      -0.4345796472, -0.998876278,
    ],
  ],
  [
    "torch.optim.SGD",
    (shapes) => new SGD(shapes, { lr: 0.1, weightDecay: 0.1, ...every }),
    [
      0.7231759464, 0.889162762, 0.1232381596, -0.7193821854, -0.8890365277, -0.1933141002, 0.5678761658,
      -0.3990467387, -0.9140460633,
    ],
  ],
  [
    "torch.optim.SGD with momentum and dampening",
    (shapes) => new SGD(shapes, { lr: 0.1, weightDecay: 0.1, momentum: 0.9, dampening: 0.5, ...every }),
    [
      0.6468195591, 0.7921577258, 0.1192261949, -0.6571098371, -0.7806986899, -0.1860612902, 0.489708178,
      -0.3359693093, -0.8385264925,
    ],
  ],
  [
    "torch.optim.SGD by Nesterov that maximizes",
    (shapes) =>
      new SGD(shapes, { lr: 0.1, weightDecay: 0.1, momentum: 0.9, nesterov: true, maximize: true, ...every }),
    [
      1.0502675117, 0.8613442134, 0.1552951596, -0.7418983765, -1.0540055263, -0.4470093111, 0.4380165759,
      -0.4488277872, -1.0350311904,
    ],
  ],
  [
    "transformers' Adafactor",
    (shapes) => new Adafactor(shapes),
    [
      0.8252685323, 0.912120621, 0.1350751771, -0.7526748076, -0.9531082889, -0.2497031597, 0.547055826,
      -0.4086491317, -0.9842361241,
    ],
  ],
  [
    "transformers' Adafactor with a learning rate, decay and a first moment",
    (shapes) =>
      new Adafactor(shapes, {
        lr: 0.05,
        scaleParameter: false,
        beta1: 0.9,
        weightDecay: 0.1,
        clipThreshold: 0.5,
      }),
    [
      0.8165108184, 0.8948448622, 0.1355336833, -0.7421807266, -0.9371338805, -0.2557810958, 0.5324061889,
      -0.4004298114, -0.9710945762,
    ],
  ],
  [
    "transformers' Adafactor with warm-up",
    (shapes) => new Adafactor(shapes, { warmupInit: true }),
    [
      0.8414683339, 0.9092990403, 0.1411185646, -0.756801865, -0.9589244842, -0.2794093791, 0.5403051459,
      -0.4161467553, -0.9899914937,
    ],
  ],
];

/** Awkward sizes: no slice ends where a row does, and one parameter is a scalar. */
const awkward: Shapes = {
  matrix: { shape: [70, 53], values: wave(70 * 53, (place) => Math.sin(place * 1.7)) },
  bias: { shape: [53], values: wave(53, (place) => Math.cos(place)) },
  stack: { shape: [3, 20, 31], values: wave(3 * 20 * 31, (place) => Math.sin(place ** 1.3) * 1e-2) },
  scalar: { shape: [], values: [0.7] },
  long: { shape: [2500], values: wave(2500, (place) => Math.cos(place * 0.3)) },
};
const awkwardGradients: Values[] = [1, 2, 3, 4].map((step) =>
  Object.fromEntries(
    Object.entries(awkward).map(([name, { values }], parameter) => [
      name,
      wave(values.length, (place) => Math.sin(place * step * 0.37 + parameter) * 10 ** -parameter),
    ]),
  ),
);

const all: readonly [string, (shapes: NamedShapes) => OptimizerSpec][] = [
  ["AdamW", (shapes) => new AdamW(shapes, { lr: 0.01, weightDecay: 0.1 })],
  ["Adam", (shapes) => new Adam(shapes, { lr: 0.01, weightDecay: 0.1 })],
  ["SGD", (shapes) => new SGD(shapes, { lr: 0.1, weightDecay: 0.1 })],
  ["SGD with momentum", (shapes) => new SGD(shapes, { lr: 0.1, momentum: 0.9, nesterov: true })],
  ["Lion", (shapes) => new Lion(shapes, { lr: 0.01, weightDecay: 0.1 })],
  ["LAMB", (shapes) => new LAMB(shapes, { lr: 0.01, weightDecay: 0.1 })],
  ["Adafactor", (shapes) => new Adafactor(shapes, { weightDecay: 0.1 })],
  ["Adafactor with a first moment", (shapes) => new Adafactor(shapes, { beta1: 0.9, lr: 0.01 })],
];

/** The same steps by the readable reference, in float64 on one device. */
function byReference(
  spec: OptimizerSpec,
  shapes: Shapes,
  gradients: readonly Values[],
  state: LocalState,
): Values {
  const parameters = new Map<string, { readonly tensor: Tensor }>(
    Object.entries(shapes).map(([name, { shape, values }]) => {
      const memory = hold(() => tensor(values, { dtype: "float64" }).view([...shape]));
      return [name, { tensor: memory.requiresGrad_() }];
    }),
  );
  gradients.forEach((gradient, index) => {
    for (const [name, { tensor: memory }] of parameters) {
      const rounded = Float32Array.from(gradient[name] ?? []);
      memory.grad = tensor(Float64Array.from(rounded)).view([...memory.shape]);
    }
    stepLocal(parameters, spec, state, index + 1);
  });
  return Object.fromEntries(
    [...parameters].map(([name, { tensor: memory }]) => [
      name,
      Array.from(memory.detach().toTypedArray(), Number),
    ]),
  );
}

function largestError(got: Values, expected: Values): number {
  const errors = Object.entries(expected).map(([name, values]) => {
    const largest = Math.max(...values.map(Math.abs));
    return (
      Math.max(...values.map((value, index) => Math.abs(value - (got[name]?.[index] ?? Number.NaN)))) /
      largest
    );
  });
  return Math.max(...errors);
}

describe("optimizers", () => {
  const state: LocalState = new Map();
  afterEach(() => releaseState(state));

  it.each(torchValues)("follow %s, fused and by the reference", (_, create, expected) => {
    const spec = create(named(small));
    const whole = { w: expected.slice(0, 6), b: expected.slice(6) };
    const { values } = shardedSteps(spec, small, { numRanks: 1, gradients: smallGradients });
    // float32 against float64, three steps of values near 1: some units of 6e-8.
    expect(largestError(values.at(-1) ?? {}, whole)).toBeLessThan(1e-6);
    // The printed digits; gradients were rounded to float32 here.
    expect(largestError(byReference(spec, small, smallGradients, state), whole)).toBeLessThan(1e-7);
  });

  it.each(all)(
    "%s follows the float64 reference on stacks, matrices, vectors and scalars",
    (name, create) => {
      const spec = create(named(awkward));
      const { values } = shardedSteps(spec, awkward, { numRanks: 2, gradients: awkwardGradients });
      const expected = byReference(spec, awkward, awkwardGradients, state);
      // Lion moves by a sign: where a sum is rounding alone, float32 and float64 may differ in it. None does here.
      expect(largestError(values.at(-1) ?? {}, expected), name).toBeLessThan(5e-6);
    },
  );

  it.each(all)("%s gives the same bits, state included, for every number of ranks", (_, create) => {
    const spec = create(named(awkward));
    const whole = shardedSteps(spec, awkward, { numRanks: 1, gradients: awkwardGradients });
    for (const numRanks of [2, 3, 5, 12]) {
      const sharded = shardedSteps(spec, awkward, { numRanks, gradients: awkwardGradients });
      expect(sharded.values).toEqual(whole.values);
      expect(sharded.state).toEqual(whole.state);
    }
  });

  it.each(all)(
    "%s writes the low-precision copy rounded to nearest and unscales the gradient",
    (_, create) => {
      const spec = create(named(awkward));
      const plain = shardedSteps(spec, awkward, { numRanks: 2, gradients: awkwardGradients });
      const options = {
        numRanks: 2,
        gradients: awkwardGradients,
        dtype: "bfloat16",
        lossScale: 1024,
      } as const;
      const { values, narrow } = shardedSteps(spec, awkward, options);
      expect(values).toEqual(plain.values);
      const rounded = Object.entries(values.at(-1) ?? {}).map(([name, of]) => [
        name,
        Array.from(tensor(of, { dtype: "float32" }).to("bfloat16").to("float32").toTypedArray(), Number),
      ]);
      expect(narrow.at(-1)).toEqual(Object.fromEntries(rounded));
    },
  );

  it.each(all)("%s reads a bfloat16 gradient with the bits of its float32 form", (_, create) => {
    const gradients = awkwardGradients.map((values) =>
      Object.fromEntries(
        Object.entries(values).map(([name, of]) => [name, of.map((value) => Math.round(value * 64) / 64)]),
      ),
    );
    const of = (gradientDtype: "float32" | "bfloat16") =>
      shardedSteps(create(named(awkward)), awkward, { numRanks: 1, gradients, gradientDtype });
    expect(of("bfloat16")).toEqual(of("float32"));
  });

  it("keep of a matrix under Adafactor one number a row and a column", () => {
    const spec = new Adafactor(named(awkward));
    const { state: kept } = shardedSteps(spec, awkward, { numRanks: 3, gradients: awkwardGradients });
    const sizes = Object.fromEntries(Object.entries(kept).map(([name, values]) => [name, values.length]));
    expect(sizes).toEqual({
      "exp_avg_sq_row.matrix": 70,
      "exp_avg_sq_col.matrix": 53,
      "exp_avg_sq_row.stack": 60,
      "exp_avg_sq_col.stack": 93,
      "exp_avg_sq.bias": 53,
      "exp_avg_sq.scalar": 1,
      "exp_avg_sq.long": 2500,
    });
  });

  it("share the parameters of one block, each with its own rule, state and learning rate", () => {
    const lion = new Lion(named(awkward), { lr: 0.01, only: /stack|long/ });
    const lamb = new LAMB(named(awkward), { lr: 0.02, only: /matrix|bias|scalar/ });
    const gradients = awkwardGradients;
    const both = shardedSteps([lion, lamb], awkward, { numRanks: 3, gradients });
    const alone = [Lion, LAMB].map((Kind, index) =>
      shardedSteps(new Kind(named(awkward), { lr: 0.01 * (index + 1) }), awkward, { numRanks: 1, gradients }),
    );
    for (const [name, values] of Object.entries(both.values.at(-1) ?? {})) {
      expect(values).toEqual(alone[/stack|long/.test(name) ? 0 : 1]?.values.at(-1)?.[name]);
    }
    expect(Object.keys(both.state).sort()).toEqual(
      ["exp_avg.bias", "exp_avg.long", "exp_avg.matrix", "exp_avg.scalar", "exp_avg.stack"].concat([
        "exp_avg_sq.bias",
        "exp_avg_sq.matrix",
        "exp_avg_sq.scalar",
      ]),
    );
  });

  it("optimizers arrive complete in another thread", () => {
    for (const [, create] of all) {
      const spec = create(named(awkward));
      expect(structuredClone(spec)).toEqual({ ...spec });
    }
  });

  it.each([
    ["a negative momentum", () => new SGD(named(small), { momentum: -1 })],
    ["Nesterov without momentum", () => new SGD(named(small), { nesterov: true })],
    ["Nesterov with dampening", () => new SGD(named(small), { nesterov: true, momentum: 1, dampening: 1 })],
    ["a beta of one", () => new Lion(named(small), { betas: [1, 0] })],
    ["a negative eps", () => new LAMB(named(small), { eps: -1 })],
    ["warm-up without relative steps", () => new Adafactor(named(small), { lr: 1, warmupInit: true })],
    ["neither relative steps nor a rate", () => new Adafactor(named(small), { relativeStep: false })],
    ["a decay rate that grows", () => new Adafactor(named(small), { decayRate: 0.8 })],
    ["another optimizer's option", () => new Lion(named(small), { eps: 1e-8 } as object)],
    ["a rate by another name", () => new SGD(named(small), { learningRate: 1 } as object)],
    ["names that match nothing", () => new Lion(named(small), { only: /no such/ })],
    ["a job's rule of clipping", () => new SGD(named(small), { clipNorm: { by: "value", max: 1 } as never })],
    ["a largest norm that is a text", () => new SGD(named(small), { clipNorm: "1" as never })],
    ["a rate that is a text", () => new AdamW(named(small), { lr: "1e-3" as never })],
    ["one beta", () => new AdamW(named(small), { betas: 0.9 as never })],
    ["a decay by an unknown name", () => new AdamW(named(small), { decay: "all" as never })],
    ["an object in place of parameters", () => new AdamW({} as never)],
    ["nothing in place of parameters", () => new AdamW(undefined as never)],
    ["parameters without names", () => new AdamW([{ shape: [2] }] as never)],
  ])("refuse %s", (_, create) => {
    expect(create).toThrow(expect.objectContaining({ code: "OPTIMIZER_OPTION" }));
  });

  it.each([
    [{ lrAt: () => "1e-3" }, 'lrAt(3) to be a number ≥ 0, got "1e-3"'],
    [{ lrAt: () => Number.NaN }, "lrAt(3) to be a number ≥ 0, got NaN"],
    [{ lrAt: () => -1 }, "lrAt(3) to be a number ≥ 0, got -1"],
  ])("refuse a schedule that gives no rate: %s", (schedule, message) => {
    expect(() => rateAt(schedule as never, 3)).toThrow(message);
  });
});
