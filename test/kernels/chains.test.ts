// Chains of elementwise operators beside the same operators, issued singly.
import { describe, expect, it } from "vitest";
import {
  beginRecording,
  type Device,
  describeProgram,
  dropProgram,
  endForward,
  full,
  grad,
  improveProgram,
  numThreads,
  onDevice,
  ops,
  playBackward,
  playForward,
  recordBackward,
  scope,
  setNumThreads,
  type Tensor,
  tensor,
} from "../../src/compute/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";
import { exact, expectNear, expectSame, normal, roundingError } from "./inputs.ts";

type Body = (...inputs: Tensor[]) => Tensor;

/** A body's result, and the gradients of its inputs. */
function single(body: Body, inputs: readonly Tensor[], upstream: Tensor): (Tensor | null)[] {
  const result = body(...inputs);
  const leaves = inputs.filter(({ requiresGrad }) => requiresGrad);
  return [result.detach(), ...grad([result], leaves, [upstream])];
}

interface Played {
  readonly results: (Tensor | null)[];
  readonly forward: string;
  readonly backward: string;
}

/** The same by an improved program, and its operators. */
function played(body: Body, inputs: readonly Tensor[], upstream: Tensor, fast = false): Played {
  const recording = beginRecording(inputs, []);
  const result = body(...inputs);
  expect(endForward(recording, [result], [])).toBe("");
  const leaves = inputs.filter(({ requiresGrad }) => requiresGrad);
  const { program } = recordBackward(recording, [upstream], () => grad([result], leaves, [upstream]));
  if (typeof program !== "number") throw new Error(`${program}`);
  improveProgram(program, fast);
  const { forward, backward } = describeProgram(program);
  const { results, call } = playForward(program, inputs, [], [false], true);
  const gradients = playBackward(call, [upstream], leaves.length) ?? [];
  dropProgram(program);
  return {
    results: [...results, ...gradients],
    forward: forward.operators.join("\n"),
    backward: backward.operators.join("\n"),
  };
}

function expectAll(results: readonly (Tensor | null)[], wanted: readonly (Tensor | null)[]): void {
  expect(results).toHaveLength(wanted.length);
  for (const [index, result] of results.entries())
    expectSame((result as Tensor).onto("cpu"), (wanted[index] as Tensor).onto("cpu"));
}

const narrow = ["bfloat16", "float16"] as const;
const types = ["float32", ...narrow] as const;
type Type = (typeof types)[number];

/** Numbers of both signs: the least, the largest, subnormal ones, some that lie halfway between two narrow ones, and those that are none. */
const ends = [
  0,
  1e-45,
  1e-40,
  9.2e-41,
  1.2e-38,
  2 ** -25,
  3e-6,
  6.1e-5,
  1,
  1.00390625,
  1.01171875,
  1 + 2 ** -11,
  255.5,
  65_504,
  65_520,
  3.38e38,
  3.4e38,
  Number.POSITIVE_INFINITY,
  Number.NaN,
].flatMap((end) => [end, -end]);

/** Ends, and numbers of any bits; with enough elements all narrow ones, and each end of one stream stands beside each of another. */
function inputOf(length: number, stream: number, dtype: Type): Tensor {
  const bits = Uint32Array.from({ length }, (_, i) =>
    dtype === "float32" ? Math.imul(i + stream, 0x9e3779b1) : ((i + stream * 257) & 0xffff) << 16,
  );
  const halves = new Float16Array(new Uint16Array(bits.buffer).filter((_, i) => i % 2 === 1).buffer);
  const numbers = dtype === "float16" ? Float32Array.from(halves) : new Float32Array(bits.buffer);
  const most = Math.min(length, 2 * ends.length ** 2);
  for (let i = 0; i < most; i += 2) {
    const place = stream === 0 ? i / 2 : Math.floor(i / 2 / ends.length);
    numbers[i] = ends[place % ends.length] as number;
  }
  return tensor(numbers).to(dtype).requiresGrad_();
}

/** Operators that may be joined, the dtypes in which they are, and what lists call them. */
const operators: readonly (readonly [string, readonly Type[], string, Body])[] = [
  ["x + y", types, "add", (x, y) => x.add(y as Tensor)],
  ["x + 0.1", types, "add", (x) => x.add(0.1)],
  ["x - y", types, "sub", (x, y) => x.sub(y as Tensor)],
  ["x - 0.1", types, "sub", (x) => x.sub(0.1)],
  ["x * y", types, "mul", (x, y) => x.mul(y as Tensor)],
  ["x * 0.1", types, "mul", (x) => x.mul(0.1)],
  ["x / y", types, "div", (x, y) => x.div(y as Tensor)],
  ["x / 3", types, "div", (x) => x.div(3)],
  ["-x", types, "neg", (x) => x.neg()],
  ["√x", narrow, "sqrt", (x) => x.sqrt()],
  ["x ** 0.5", ["bfloat16"], "sqrt", (x) => x.pow(0.5)],
  ["1 / √x", ["float32"], "rsqrt", (x) => x.rsqrt()],
  ["x ** -0.5", ["float32"], "rsqrt", (x) => x.pow(-0.5)],
  ["1 / x", types, "reciprocal", (x) => x.reciprocal()],
  ["x ** -1", types, "reciprocal", (x) => x.pow(-1)],
  ["x²", types, "square", (x) => x.square()],
  ["x³", ["float32"], "cube", (x) => x.pow(3)],
  ["|x|", types, "abs", (x) => x.abs()],
  ["relu(x)", types, "relu", (x) => x.relu()],
];

describe("chains in exact programs", () => {
  it.each(operators)("have the bits of %s", (_, joined, listed, run) => {
    // In each, vectors end elsewhere; the last has all narrow numbers.
    for (const length of [1, 3, 16, 31, 1025, 70_001]) {
      for (const dtype of types) {
        scope(() => {
          const inputs =
            run.length === 1
              ? [inputOf(length, 0, dtype)]
              : [0, 1].map((stream) => inputOf(length, stream, dtype));
          const upstream = inputOf(length, 2, dtype).detach();
          const { results, forward } = played(run, inputs, upstream);
          expectAll(results, single(run, inputs, upstream));
          if (joined.includes(dtype)) expect(forward).toContain(`= one pass of ${listed}(`);
          else expect(forward).not.toContain("one pass");
        });
      }
    }
  });

  it("have the bits of relu's gradient", () => {
    scope(() => {
      const run: Body = (x) => x.relu().neg();
      for (const dtype of types) {
        const [x, upstream] = [inputOf(70_001, 0, dtype), inputOf(70_001, 1, dtype).detach()];
        const { results, backward } = played(run, [x], upstream);
        expectAll(results, single(run, [x], upstream));
        expect(backward).toContain("one pass of neg, relu_backward(");
      }
    });
  });

  /** Shapes that repeat in [6, 5, 8]: rows, columns, both, an element. */
  const shapes = [[6, 5, 8], [8], [5, 1], [6, 1, 1], [5, 8], [6, 5, 1], [1], [1, 5, 1], [6, 1, 8]];

  it.each(shapes)("read what repeats, of any dtype: %j", (...shape) => {
    for (const [one, other] of types.flatMap((one) => types.map((other) => [one, other] as const))) {
      scope(() => {
        const run: Body = (x, y) =>
          x
            .mul(y as Tensor)
            .add(y as Tensor)
            .sub(x)
            .div(2.7);
        const x = normal([6, 5, 8], 1, { dtype: one }).requiresGrad_();
        const y = normal(shape, 2, { dtype: other }).requiresGrad_();
        const upstream = normal([6, 5, 8], 3).to(run(x, y).dtype);
        const { results, forward } = played(run, [x, y], upstream);
        expectAll(results, single(run, [x, y], upstream));
        // Neither does a dim that repeats stand between others, nor has a pass two narrow dtypes.
        const isOdd = `${shape}` === "6,1,8" || new Set([one, other, "float32"]).size === 3;
        expect(forward.includes("= one pass of mul, add, sub, div(")).toBe(!isOdd);
      });
    }
  });

  it("do not take an element of float32 for one of bfloat16", () => {
    scope(() => {
      const run: Body = (x, y) => x.mul(y as Tensor).add(y as Tensor);
      const [x, y] = [normal([70], 1, { dtype: "bfloat16" }), normal([1], 2).view([])];
      const upstream = normal([70], 3, { dtype: "bfloat16" });
      const { results, forward } = played(run, [x.requiresGrad_(), y], upstream);
      expectAll(results, single(run, [x, y], upstream));
      expect(forward).not.toContain("one pass");
    });
  });
});

/** Root-mean-square norm as a user writes it, with a residual and a scale. */
const rmsNorm: Body = (x, weight, residual) => {
  const wide = x.to("float32");
  const rstd = wide.square().mean(-1, true).add(1e-6).rsqrt();
  const normed = wide
    .mul(rstd)
    .to(x.dtype)
    .mul(weight as Tensor);
  return normed.add(residual as Tensor).mul(0.7);
};

/** The same without casts. */
const rmsNorm64: Body = (x, weight, residual) => {
  const rstd = x.square().mean(-1, true).add(1e-6).rsqrt();
  return x
    .mul(rstd)
    .mul(weight as Tensor)
    .add(residual as Tensor)
    .mul(0.7);
};

/** A gated half's middle, without a sigmoid. */
const gated: Body = (gate, up) =>
  (gate as Tensor)
    .relu()
    .square()
    .mul(up as Tensor)
    .div(8);

describe.each(
  narrow.flatMap((dtype) => (["cpu", "sim:0"] as const).map((device) => [dtype, device] as const)),
)("chains of %s that a user writes, on %s", (dtype: Type, device: Device) => {
  const on = (body: () => void) => scope(() => onDevice(device, body));
  const drawn = (shape: readonly number[], stream: number) =>
    normal(shape, stream, { dtype }).onto(device).requiresGrad_();

  it.each([768, 40, 7])("give a norm of %i features the bits of single operators", (width) => {
    on(() => {
      const inputs = [drawn([67, width], 0), drawn([width], 1), drawn([67, width], 2)];
      const upstream = drawn([67, width], 3).detach();
      const { results, forward, backward } = played(rmsNorm, inputs, upstream);
      expectAll(results, single(rmsNorm, inputs, upstream));
      expect(forward).toContain("= one pass of to, square(");
      expect(forward).toContain("= one pass of add, rsqrt(");
      expect(forward).toContain("= one pass of mul, to, mul, add, mul(");
      expect(backward).toMatch(/one pass of .*to/);
    });
  });

  it("give a gate the bits of single operators", () => {
    on(() => {
      const inputs = [drawn([33, 129], 0), drawn([33, 129], 1)];
      const upstream = drawn([33, 129], 2).detach();
      const { results, forward } = played(gated, inputs, upstream);
      expectAll(results, single(gated, inputs, upstream));
      expect(forward).toContain("= one pass of relu, square, mul, div(");
    });
  });
});

/** A body's results in float64, where nothing is rounded. */
const inFloat64 = (body: Body, inputs: readonly Tensor[], upstream: Tensor) =>
  single(body, inputs.map(exact), upstream.to("float64"));

/** Elementary functions, which are joined in fast programs alone, and the operators of both halves. */
const elementary: readonly (readonly [string, string, string, Body])[] = [
  ["exp(x)", "exp", "mul", (x) => x.exp()],
  ["log(sigmoid(x))", "sigmoid, log", "div, sigmoid_backward", (x) => x.sigmoid().log()],
  ["tanh(x)", "tanh", "tanh_backward", (x) => x.tanh()],
  ["sigmoid(x)", "sigmoid", "sigmoid_backward", (x) => x.sigmoid()],
  ["silu(x)", "silu", "silu_backward", (x) => ops.silu(x)],
  ["gelu(x)", "gelu", "gelu_backward", (x) => ops.gelu(x, "none")],
  ["gelu_new(x)", "gelu_tanh", "gelu_tanh_backward", (x) => ops.gelu(x, "tanh")],
];

describe("chains in fast programs", () => {
  it.each(elementary)("compute %s by the project's own functions", (_, listed, ofGradient, run) => {
    for (const dtype of types) {
      scope(() => {
        // The ends of exponentials.
        const far = [-1000, -100, -88, -0, 0, 1e-30, 80, 100, 1000, Number.NaN];
        const special = tensor(Float32Array.from(far)).to(dtype).requiresGrad_();
        const ones = full([far.length], 1).to(dtype);
        // As libtorch has it, but for what is next to nothing.
        const near = (values: readonly (number | bigint)[]) =>
          values.map((each) => Number(Number(each).toPrecision(2)) + 0);
        const clear = (t: Tensor | null | undefined) =>
          near(numbers((t as Tensor).to("float32"))).map((each) => (Math.abs(each) < 1e-29 ? 0 : each));
        expect(clear(played(run, [special], ones, true).results[0])).toEqual(
          clear(single(run, [special], ones)[0]),
        );
        // Four standard deviations are the most: exponentials of float16 end at 11.
        const x = normal([5001], 1, { std: 2.5, dtype }).requiresGrad_();
        const upstream = normal([5001], 2, { dtype });
        const { results, forward, backward } = played(run, [x], upstream, true);
        expect(forward).toContain(`= one pass of ${listed}(`);
        expect(backward).toContain(`= one pass of ${ofGradient}(`);
        expectAll(played(run, [x], upstream, true).results, results);
        const wanted = inFloat64(run, [x], upstream);
        // A gradient of a result that was rounded is rounded a second time.
        for (const [index, result] of results.entries())
          expectNear(result as Tensor, wanted[index] as Tensor, (1 + index) * roundingError[dtype]);
        expect(played(run, [x], upstream).forward).not.toContain("one pass");
      });
    }
  });

  it.each([
    ["norm", rmsNorm64, rmsNorm, 3],
    ["gate", gated, gated, 2],
  ] as const)("follow float64, and each other to the bit: a %s", (_, reference, body, count) => {
    scope(() => {
      const shapes = [[67, 129], body === rmsNorm ? [129] : [67, 129], [67, 129]].slice(0, count);
      const inputs = shapes.map((shape, stream) =>
        normal(shape, stream, { dtype: "bfloat16" }).requiresGrad_(),
      );
      const upstream = normal([67, 129], 3, { dtype: "bfloat16" });
      const { results } = played(body, inputs, upstream, true);
      expectAll(played(body, inputs, upstream, true).results, results);
      const wanted = inFloat64(reference, inputs, upstream);
      // A result is rounded once. Gradients are sums of several that are, and of what forward rounded: within two of such roundings.
      for (const [index, result] of results.entries())
        expectNear(result as Tensor, wanted[index] as Tensor, index === 0 ? roundingError.bfloat16 : 2 ** -7);
    });
  });
});

/** Softmax as its formula has it. */
const softmax: Body = (x) => {
  const powers = x.sub(x.amax([-1], true)).exp();
  return powers.div(powers.sum([-1], true));
};

const layerNorm: Body = (x, weight, bias) => {
  const centred = x.sub(x.mean(-1, true));
  const rstd = centred.square().mean(-1, true).add(1e-5).rsqrt();
  return centred
    .mul(rstd)
    .mul(weight as Tensor)
    .add(bias as Tensor);
};

/** Bodies with sums of rows, their dtypes, what passes list, and the shapes of what they read beside x. */
const ofRows: readonly (readonly [
  string,
  Type,
  Body,
  Body,
  string,
  (width: number) => readonly number[][],
])[] = [
  [
    "norm",
    "bfloat16",
    rmsNorm,
    rmsNorm64,
    "to, square, mean, add, rsqrt, spread, mul, to, mul, add, mul",
    (width) => [[width], [width]],
  ],
  ["softmax", "float32", softmax, softmax, "max, spread, sub, exp, sum, spread, div", () => []],
  [
    "layer norm",
    "float32",
    layerNorm,
    layerNorm,
    "mean, spread, sub, square, mean, add, rsqrt, spread, mul, mul, add",
    (width) => [[width], [width]],
  ],
];

describe("chains of rows in fast programs", () => {
  it.each(ofRows)(
    "follow float64, alike on any number of threads: %s",
    (_, dtype, body, reference, listed, others) => {
      for (const shape of [
        [67, 129],
        [3, 5, 40],
        [1, 7],
        [50, 16],
        [3, 8192],
        [300, 1000],
      ]) {
        scope(() => {
          const all = [shape, ...others(shape.at(-1) as number)];
          const inputs = all.map((each, stream) => normal(each, stream, { dtype }).requiresGrad_());
          const upstream = normal(shape, 3, { dtype });
          const { results, forward, backward } = onThreads(1, () => played(body, inputs, upstream, true));
          expect(forward).toContain(`= one pass of ${listed}(`);
          expect(backward).toMatch(/one pass of [^(]*sum, [^(]*spread/);
          expectAll(onThreads(2, () => played(body, inputs, upstream, true)).results, results);
          const wanted = inFloat64(reference, inputs, upstream);
          // With float32 a few roundings, and those of sums of up to 8,192 numbers in gradients. With bfloat16 numbers are rounded where backward
          // reads them and at the end.
          const tolerances = dtype === "float32" ? [2 ** -20, 2 ** -17] : [2 ** -7, 2 ** -7];
          for (const [index, result] of results.entries())
            expectNear(result as Tensor, wanted[index] as Tensor, tolerances[Math.min(index, 1)] as number);
          expect(played(body, inputs, upstream).forward).not.toMatch(/one pass of [^(]*(mean|sum|max)/);
        });
      }
    },
  );

  it("leave rows to libtorch that do not fit the cache, and dims that are not the last", () => {
    scope(() => {
      const byColumns: Body = (x) => x.sub(x.mean(0, true)).mul(2);
      for (const [body, shape] of [
        [softmax, [2, 8193]],
        [byColumns, [8, 8]],
      ] as const) {
        const { forward } = played(body, [normal(shape, 1).requiresGrad_()], normal(shape, 2), true);
        expect(forward).toMatch(/= aten::(amax|mean)/);
      }
    });
  });

  it("keep a view of rows that another operator reads", () => {
    scope(() => {
      const body: Body = (x, weight) => {
        const spread = x.square().mean(-1, true).expand([6, 8]);
        return x.mul(spread).add(spread.matmul(weight as Tensor));
      };
      const inputs = [normal([6, 8], 1).requiresGrad_(), normal([8, 8], 2).requiresGrad_()];
      const upstream = normal([6, 8], 3);
      const { results, forward } = played(body, inputs, upstream, true);
      expect(forward).toMatch(/one pass of square, mean, spread, mul\(.*\n.*= view/);
      const wanted = inFloat64(body, inputs, upstream);
      // Products and sums of eight numbers: a few roundings.
      for (const [index, result] of results.entries())
        expectNear(result as Tensor, wanted[index] as Tensor, 2 ** -20);
    });
  });

  it("have NaN as a row's largest number", () => {
    scope(() => {
      const x = normal([3, 70], 1);
      x.narrow(0, 1, 1).narrow(1, 69, 1).fill_(Number.NaN);
      const body: Body = (given) => given.mul(1).amax([-1], true).mul(1);
      const { results, forward } = played(body, [x.requiresGrad_()], full([3, 1], 1), true);
      expect(forward).toContain("one pass of mul, max, mul(");
      expectSame(results[0] as Tensor, x.detach().amax([-1], true));
    });
  });
});

/** Rows' sums and the project's own functions together: softmax, and what a gate makes of a norm. */
const mixed: Body = (x, weight) => {
  const normed = x.mul(x.square().mean(-1, true).add(1e-6).rsqrt()).mul(weight as Tensor);
  const gate = ops.silu(normed).mul(ops.gelu(normed, "tanh"));
  return softmax(gate.add(x.sigmoid())).mul(x.exp());
};

describe("chains of fast programs on the pretend device", () => {
  it.each(types)("have the bits of the CPU's: %s", (dtype) => {
    scope(() => {
      const made = (device: Device) =>
        onDevice(device, () => {
          const on = (shape: readonly number[], stream: number) =>
            normal(shape, stream, { dtype }).onto(device);
          const inputs = [on([37, 129], 0).requiresGrad_(), on([129], 1).requiresGrad_()];
          return played(mixed, inputs, on([37, 129], 2), true);
        });
      const [here, there] = [made("cpu"), made("sim:0")];
      expect(there.forward).toBe(here.forward);
      expect(there.forward).toMatch(/one pass of [^(]*mean[^(]*silu[^(]*max[^(]*exp[^(]*sum/);
      expectAll(there.results, here.results);
    });
  });
});

function onThreads<T>(count: number, body: () => T): T {
  const before = numThreads();
  setNumThreads(count);
  try {
    return body();
  } finally {
    setNumThreads(before);
  }
}
