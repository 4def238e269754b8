import { describe, expect, it } from "vitest";
import {
  beginRecording,
  describeProgram,
  dropProgram,
  endForward,
  grad,
  improveProgram,
  ops,
  playBackward,
  playForward,
  recordBackward,
  type Tensor,
  tensor,
} from "../../src/compute/tensor/index.ts";
import { normal } from "../kernels/inputs.ts";
import { expectLike, hasKernels, onGpu, withKernels } from "./gpu.ts";

type Body = (...inputs: Tensor[]) => Tensor[];

/** A program of `body`, improved, and what backward of all its results gives. */
function programOf(
  body: Body,
  inputs: readonly Tensor[],
  gradients: readonly Tensor[],
  fast = false,
): number {
  const recording = beginRecording(inputs, []);
  const results = body(...inputs);
  expect(endForward(recording, results, [])).toBe("");
  const leaves = inputs.filter(({ requiresGrad }) => requiresGrad);
  const { program } = recordBackward(recording, gradients, () => grad(results, leaves, gradients));
  if (typeof program !== "number") throw new Error(`${program}`);
  improveProgram(program, fast);
  return program;
}

/**
 * Operators of chains that libtorch rounds alike on the CPU and on a GPU, of complete tensors, rows, columns, one element and numbers; values that are
 * results and values that are not. A GPU adds a number to narrow tensors unrounded, so this one has few digits.
 */
const mixed: Body = (x, row, one, column) => {
  const y = (x as Tensor)
    .mul(row as Tensor)
    .add(one as Tensor)
    .sub(-0.125)
    .mul(0.3);
  const z = y
    .mul(y)
    .neg()
    .add(row as Tensor)
    .div(x as Tensor)
    .abs()
    .mul(column as Tensor);
  return [
    y,
    z
      .sub(x as Tensor)
      .relu()
      .square()
      .reciprocal(),
  ];
};

const mixedText =
  "one pass of mul, add, sub, mul, mul, neg, add, div, abs, mul, sub, relu, square, reciprocal";

/** Casts both ways. */
const cast =
  (narrow: "bfloat16" | "float16"): Body =>
  (x, row) => {
    const wide = (x as Tensor).to("float32");
    const y = wide.square().add(0.25).reciprocal().mul(wide).square();
    return [y, y.to(narrow).mul((row as Tensor).to(narrow))];
  };

const types = ["float32", "bfloat16", "float16"] as const;

describe.skipIf(!hasKernels)("programs with the kernels for CUDA", () => {
  const sizes = [
    [64, 768],
    [70, 7],
    [3, 8],
    [1, 1],
  ] as const;
  const cases = types.flatMap((dtype) =>
    sizes.flatMap(([rows, width]) => [
      { dtype, rows, width, body: mixed, text: mixedText },
      {
        dtype,
        rows,
        width,
        body: cast(dtype === "float16" ? dtype : "bfloat16"),
        text: /one pass of (to, )?square, add, reciprocal, mul, square/,
      },
    ]),
  );

  it.each(cases)(
    "compute chains of $rows × $width elements of $dtype by kernels of their own text, to the bit: $text",
    (of) => {
      const { dtype, rows, width, body, text } = of;
      const ends = [0, -0, 1e-40, -1e38, 3.4e38, Number.POSITIVE_INFINITY, Number.NaN];
      const special = tensor(Array.from({ length: rows * width }, (_, i) => ends[i % 97] ?? Math.sin(i)));
      for (const x of [normal([rows, width], 1, { std: 3 }), special.view([rows, width])]) {
        const others = [normal([width], 2), normal([1], 3), normal([rows, 1], 4)].slice(0, body.length - 1);
        const inputs = [x, ...others].map((each) => each.to(dtype));
        for (const each of inputs.slice(0, 2)) each.requiresGrad_();
        const results = body(...inputs);
        const from = results.map((result) => result.detach().mul(0.37).add(0.11));
        const wanted = grad(results, inputs.slice(0, 2), from);
        withKernels(() => {
          const given = inputs.map(onGpu);
          const gradients = from.map(onGpu);
          const program = programOf(body, given, gradients);
          const { forward, backward } = describeProgram(program);
          expect(forward.operators.join("\n")).toMatch(text);
          expect(backward.operators.join("\n")).toMatch(/one pass of/);
          const played = playForward(program, given, [], [false, false], true);
          for (const [index, result] of results.entries())
            expectLike(played.results[index] as Tensor, result, "bits", `result ${index}`);
          for (const [index, gradient] of (playBackward(played.call, gradients, 2) ?? []).entries())
            expectLike(gradient as Tensor, wanted[index] as Tensor, "bits", `gradient ${index}`);
          dropProgram(program);
        });
      }
    },
  );

  it.each(
    types.flatMap((dtype) =>
      (
        [
          [37, 129],
          [3, 5, 40],
          [1, 7],
          [2, 8192],
          [70, 2],
        ] as const
      ).map((shape) => ({ dtype, shape })),
    ),
  )("compute rows of $shape in $dtype with the bits of the CPU's fast programs", ({ dtype, shape }) => {
    const inputs = [normal(shape, 1), normal([shape.at(-1) as number], 2)].map((each) =>
      each.to(dtype).requiresGrad_(),
    );
    const upstream = [normal(shape, 3).to(dtype)];
    const wanted = playedFast(inputs, upstream);
    withKernels(() => {
      const played = playedFast(
        inputs.map((each) => onGpu(each).requiresGrad_()),
        upstream.map(onGpu),
      );
      expect(played.operators).toEqual(wanted.operators);
      for (const [index, tensor] of played.tensors.entries())
        expectLike(tensor, wanted.tensors[index] as Tensor, "bits", `tensor ${index}`);
    });
  });
});

/** A norm, a gate and a softmax: sums, means and maxima of rows, and the project's own functions. */
const ofRows: Body = (x, weight) => {
  const rstd = (x as Tensor).square().mean(-1, true).add(1e-6).rsqrt();
  const normed = (x as Tensor).mul(rstd).mul(weight as Tensor);
  const gate = ops
    .silu(normed)
    .mul(ops.gelu(normed, "tanh"))
    .add(ops.gelu(normed, "none"))
    .add(normed.tanh());
  const powers = gate.sub(gate.amax([-1], true)).exp();
  return [powers.div(powers.sum([-1], true)).mul((x as Tensor).sigmoid().log())];
};

/** Results and gradients of {@link ofRows} by a fast program, and the program's operators. */
function playedFast(inputs: readonly Tensor[], upstream: readonly Tensor[]) {
  const program = programOf(ofRows, inputs, upstream, true);
  const { forward, backward } = describeProgram(program);
  const { results, call } = playForward(program, inputs, [], [false], true);
  const gradients = playBackward(call, upstream, inputs.length) ?? [];
  dropProgram(program);
  const operators = [...forward.operators, ...backward.operators];
  expect(operators.join("\n")).toMatch(/one pass of [^(]*mean[^(]*silu[^(]*max[^(]*exp[^(]*sum/);
  return { operators, tensors: [...results, ...gradients] as Tensor[] };
}
