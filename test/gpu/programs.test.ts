import { describe, expect, it } from "vitest";
import {
  beginRecording,
  describeProgram,
  dropProgram,
  endForward,
  grad,
  improveProgram,
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
function programOf(body: Body, inputs: readonly Tensor[], gradients: readonly Tensor[]): number {
  const recording = beginRecording(inputs, []);
  const results = body(...inputs);
  expect(endForward(recording, results, [])).toBe("");
  const leaves = inputs.filter(({ requiresGrad }) => requiresGrad);
  const { program } = recordBackward(recording, gradients, () => grad(results, leaves, gradients));
  if (typeof program !== "number") throw new Error(`${program}`);
  improveProgram(program);
  return program;
}

/** Operators of chains, of complete tensors, rows, columns, one element and numbers; values that are results and values that are not. */
const mixed: Body = (x, row, one, column) => {
  const y = (x as Tensor)
    .mul(row as Tensor)
    .add(one as Tensor)
    .sub(-0.1)
    .div(3);
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
  "one pass of mul, add, sub, div, mul, neg, add, div, abs, mul, sub, relu, square, reciprocal";

/** Casts both ways, and roots. */
const cast: Body = (x, row) => {
  const wide = (x as Tensor).to("float32");
  const y = wide.square().add(0.25).rsqrt().mul(wide).pow(3);
  return [y, y.to("bfloat16").mul((row as Tensor).to("bfloat16"))];
};

describe.skipIf(!hasKernels)("programs with the kernels for CUDA", () => {
  const sizes = [
    [64, 768],
    [70, 7],
    [3, 8],
    [1, 1],
  ] as const;
  const cases = (["float32", "bfloat16"] as const).flatMap((dtype) =>
    sizes.flatMap(([rows, width]) => [
      { dtype, rows, width, body: mixed, text: mixedText },
      { dtype, rows, width, body: cast, text: /one pass of (to, )?square, add, rsqrt, mul, cube/ },
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
          for (const [index, gradient] of playBackward(played.call, gradients, 2).entries())
            expectLike(gradient as Tensor, wanted[index] as Tensor, "bits", `gradient ${index}`);
          dropProgram(program);
        });
      }
    },
  );
});
