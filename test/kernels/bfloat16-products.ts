/**
 * Multiplies bfloat16 matrices of every layout and prints one line of JSON: what multiplied them, and each case's greatest
 * distance from float64, in halves of the last place of the row's greatest number: rounding once costs at most 1.
 */
import { nativeInfo, ops, setNumThreads, type Tensor } from "../../src/compute/tensor/index.ts";
import { gradientsOf, normal } from "./inputs.ts";

setNumThreads(2);
const narrow = (shape: readonly number[], seed: number) => normal(shape, seed, { dtype: "bfloat16" });
const wide = (x: Tensor) => x.detach().to("float64");

const distances: Record<string, number> = {};
function compare(name: string, got: Tensor, expected: Tensor): void {
  if (got.dtype !== "bfloat16") throw new Error(`${name}: expected bfloat16, got ${got.dtype}`);
  const error = wide(got).sub(expected).abs();
  distances[name] = error
    .div(
      expected
        .abs()
        .clampMin(1)
        .mul(2 ** -8),
    )
    .max()
    .item();
}

// The panels are 1,024 each way: one, a part of one, several with a rest.
for (const [rows, inner, columns] of [
  [1, 1, 1],
  [3, 70, 5],
  [130, 1024, 40],
  [1100, 40, 1030],
  [20, 2100, 2050],
] as const) {
  const a = narrow([rows, inner], 1);
  const b = narrow([inner, columns], 2);
  const bias = narrow([columns], 3);
  const name = `${rows}×${inner}×${columns}`;
  const product = wide(a).mm(wide(b));
  compare(`mm ${name}`, a.mm(b), product);
  compare(`mm ${name}, transposed`, a.t().contiguous().t().mm(b.t().contiguous().t()), product);
  compare(`linear ${name}`, ops.linear(a, b.t(), bias), product.add(wide(bias)));
  compare(`addmm ${name}, factors`, ops.addmm(bias, a, b, 0.5, 2), product.mul(2).add(wide(bias).mul(0.5)));
  const operands = [a.detach().requiresGrad_(), b.detach().requiresGrad_()] as const;
  const gradient = narrow([rows, columns], 4);
  const [da, db] = gradientsOf([operands[0].mm(operands[1])], operands, [gradient]);
  compare(`gradient of a ${name}`, da as Tensor, wide(gradient).mm(wide(b).t()));
  compare(`gradient of b ${name}`, db as Tensor, wide(a).t().mm(wide(gradient)));
}
for (const [batches, rows, inner, columns] of [
  [1, 1, 1, 1],
  [300, 64, 100, 33],
  [2, 1100, 30, 1100],
] as const) {
  const a = narrow([batches, rows, inner], 1);
  const b = narrow([batches, inner, columns], 2);
  compare(`bmm ${batches}×${rows}×${inner}×${columns}`, a.bmm(b), wide(a).bmm(wide(b)));
}
console.log(JSON.stringify({ products: nativeInfo().bfloat16Products, distances }));
