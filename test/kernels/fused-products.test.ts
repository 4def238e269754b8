// Programs that are improved with other bits: products of bfloat16 matrices with what follows them, beside float64.
import { describe, expect, it } from "vitest";
import {
  beginRecording,
  describeProgram,
  empty,
  endForward,
  type GradientPlace,
  grad,
  hasTileProducts,
  improveProgram,
  ones,
  ops,
  playBackward,
  playForward,
  recordBackward,
  scope,
  setNumThreads,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";
import { exact, expectNear, gradientsOf, normal } from "./inputs.ts";

interface Case {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
  readonly form: "tanh" | "none";
  /** Whether weights lie as in `Linear`, [out, in]. */
  readonly transposed: boolean;
  /** Rate of dropout before the residual. */
  readonly p: number;
}

const seed = 5;

// Complete tiles; edges in all dims, odd ones too; more rows than are laid out for at once, more of the inner dim than one sum has.
const cases: readonly Case[] = [
  { rows: 128, inner: 128, columns: 192, form: "tanh", transposed: false, p: 0 },
  { rows: 201, inner: 99, columns: 131, form: "none", transposed: true, p: 0.25 },
  { rows: 1100, inner: 66, columns: 70, form: "tanh", transposed: true, p: 0 },
  { rows: 37, inner: 4301, columns: 65, form: "tanh", transposed: false, p: 0.5 },
];

/** A feed-forward half with its residual: y = x + dropout(b2 + gelu(x w1 + b1) w2). */
function feedForward(
  [x, w1, b1, w2, b2]: readonly Tensor[],
  { form, transposed, p }: Case,
  stream: number,
): Tensor {
  const [x_, up, bias, down, last] = [x, w1, b1, w2, b2] as [Tensor, Tensor, Tensor, Tensor, Tensor];
  const of = (weight: Tensor) => (transposed ? weight.t() : weight);
  const wide = x_.mm(of(up));
  const active =
    x_.dtype === "float64" ? ops.gelu(wide.add(bias), form) : ops.troupe.biasGelu(wide, bias, form);
  const narrow = ops.addmm(last, active, of(down));
  if (p === 0) return x_.add(narrow);
  const drop = (y: Tensor) => ops.troupe.dropout(y, p, seed, stream, 0, y.numel, y.numel);
  return x_.add(
    x_.dtype === "float64"
      ? narrow.mul(drop(ones(narrow.shape)).to("float64")) // the kernel has no float64
      : drop(narrow),
  );
}

function inputsOf({ rows, inner, columns, transposed }: Case): Tensor[] {
  const shape = (from: number, to: number) => (transposed ? [to, from] : [from, to]);
  const drawn: [number[], number][] = [
    [[rows, inner], 1],
    [shape(inner, columns), inner ** -0.5],
    [[columns], 0.5],
    [shape(columns, inner), columns ** -0.5],
    [[inner], 0.5],
  ];
  return drawn.map(([sizes, std], stream) =>
    normal(sizes, stream, { dtype: "bfloat16", std }).requiresGrad_(),
  );
}

interface Played {
  readonly results: Tensor[];
  readonly lines: string;
}

/** Other than the recorded one: each replay draws its own numbers. */
const stream = 4;

/** The result and all gradients, by a program. */
function played(of: Case, fast: boolean, places: readonly GradientPlace[] = []): Played {
  const inputs = inputsOf(of);
  const upstream = normal([of.rows, of.inner], 9, { dtype: "bfloat16" });
  const recording = beginRecording(inputs, []);
  const y = feedForward(inputs, of, 3);
  expect(endForward(recording, [y], of.p === 0 ? [] : [3])).toBe("");
  const { program } = recordBackward(recording, [upstream], () => grad([y], inputs, [upstream]));
  if (typeof program !== "number") throw new Error(`${program}`);
  improveProgram(program, fast);
  const { forward, backward } = describeProgram(program);
  const { results, call } = playForward(program, inputs, of.p === 0 ? [] : [stream], [false], true);
  const gradients = playBackward(call, [upstream], inputs.length, places) ?? [];
  const lines = [...forward.operators, "backward", ...backward.operators].join("\n");
  return { results: [...results, ...gradients.map((gradient) => gradient as Tensor)], lines };
}

describe("products with what follows them", () => {
  it.each(cases)("follow float64: $rows x $inner x $columns, $form, transposed $transposed", (of) => {
    scope(() => {
      const leaves = inputsOf(of).map(exact);
      const y = feedForward(leaves, of, stream);
      const upstream = normal([of.rows, of.inner], 9, { dtype: "bfloat16" }).to("float64");
      const expected = [y, ...gradientsOf([y], leaves, [upstream])];
      const { results, lines } = played(of, true);
      // Rounded to bfloat16 twice or three times on the way: within 2^-7 of the largest.
      results.forEach((result, index) => {
        expect(result.dtype).toBe("bfloat16");
        expectNear(result, expected[index] as Tensor, 2 ** -7);
      });
      if (!hasTileProducts()) return expect(lines).not.toContain("product");
      expect(lines).toMatch(/= product, bias, GELU\([\s\S]*= product, bias(, dropout)?, residual\(/);
      expect(lines).toMatch(/backward[\s\S]*= product, gradient of bias and GELU\(/);
      expect(lines.split("backward")[0]).not.toMatch(/aten::|= troupe::/);
    });
  });

  it("have the same bits on any number of threads, and again", () => {
    const bits = [1, 2, 3, 1].map((threads) => {
      setNumThreads(threads);
      return cases.map((of) => scope(() => played(of, true).results.map(numbers)));
    });
    setNumThreads(1);
    for (const others of bits.slice(1)) expect(others).toEqual(bits[0]);
  });

  it.each([true, false])("write weights' gradients where they are collected, fast %s", (fast) => {
    for (const of of cases.filter(({ transposed }) => !transposed)) {
      scope(() => {
        const expected = played(of, fast).results.map(numbers);
        // Behind each other, with a gap before them: of both weights, and of a bias, which is no product.
        const numel = of.inner * of.columns;
        const flat = empty([2 * numel + of.columns + 3], { dtype: "bfloat16" }).fill_(7);
        const places = [1, 3, 2].map((gradient, index) => ({ gradient, flat, begin: 3 + index * numel }));
        const { results } = played(of, fast, places);
        expect(results.map(numbers)).toEqual(expected);
        for (const { gradient, begin } of places.slice(0, 2))
          expect(numbers(flat.narrow(0, begin, numel))).toEqual(expected[1 + gradient]);
        expect(numbers(flat.narrow(0, 0, 3))).toEqual([7, 7, 7]);
        expect(new Set(numbers(flat.narrow(0, 3 + 2 * numel, of.columns)))).toEqual(new Set([7]));
      });
    }
  });

  it.each(cases)("add weights' gradients to those before, unrounded: $rows x $inner x $columns", (of) => {
    scope(() => {
      const leaves = inputsOf(of).map(exact);
      const upstream = normal([of.rows, of.inner], 9, { dtype: "bfloat16" }).to("float64");
      const expected = gradientsOf([feedForward(leaves, of, stream)], leaves, [upstream]);
      const numel = of.inner * of.columns;
      const flat = normal([2 * numel], 12);
      const places = [1, 3].map((gradient, index) => ({ gradient, flat, begin: index * numel }));
      const before = flat.clone();
      const { results } = played(of, true, places);
      for (const { gradient, begin } of places) {
        const added = flat.narrow(0, begin, numel).sub(before.narrow(0, begin, numel));
        const wanted = (expected[gradient] as Tensor).reshape([-1]);
        expectNear(added, wanted, 2 ** -7);
        expect(results[1 + gradient]?.dtype).toBe("float32");
      }
    });
  });

  it("are left alone where bits are to stay", () => {
    for (const of of cases) expect(scope(() => played(of, false).lines)).not.toContain("product");
  });
});
