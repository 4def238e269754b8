// Single operators, exported and computed by onnxruntime, beside libtorch's results.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as nn from "../../src/compute/nn/index.ts";
import { noGrad, ops, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { writeOnnx } from "../../src/library/export/index.ts";
import { asTensor, difference, type Given, OnnxModel } from "./onnx-model.ts";

type Operands = Readonly<Record<"x" | "y" | "n", Tensor>>;

/** A model that is one expression of its inputs. */
class Expression extends nn.Module {
  readonly compute: (given: Operands) => Tensor;

  constructor(compute: (given: Operands) => Tensor) {
    super();
    this.compute = compute;
  }

  override forward(given: Operands): Tensor {
    return this.compute(given);
  }
}

const numel = 24;
const shape = [4, 6];
const given: Readonly<Record<keyof Operands, Given>> = {
  x: { shape, values: Array.from({ length: numel }, (_, at) => 3 * Math.sin(1 + 2 * at)) },
  y: { shape, values: Array.from({ length: numel }, (_, at) => (at % 2 === 0 ? 1 : -1) * (0.3 + (at % 5))) },
  n: { shape, values: Array.from({ length: numel }, (_, at) => (at % 7) - 3) },
};
const positive = ({ y }: Operands) => y.abs();

const cases: Readonly<Record<string, (given: Operands) => Tensor>> = {
  abs: ({ x }) => x.abs(),
  ceil: ({ x }) => x.ceil(),
  cos: ({ x }) => x.cos(),
  erf: ({ x }) => x.erf(),
  exp: ({ x }) => x.exp(),
  floor: ({ x }) => x.floor(),
  hardswish: ({ x }) => x.hardswish(),
  log: (all) => positive(all).log(),
  mish: ({ x }) => x.mish(),
  reciprocal: ({ y }) => y.reciprocal(),
  relu: ({ x }) => x.relu(),
  round: ({ x }) => x.mul(2).round(),
  sigmoid: ({ x }) => x.sigmoid(),
  sign: ({ x }) => x.sign(),
  sin: ({ x }) => x.sin(),
  softplus: ({ x }) => x.softplus(),
  "softplus with beta": ({ x }) => x.softplus(2),
  sqrt: (all) => positive(all).sqrt(),
  tanh: ({ x }) => x.tanh(),
  "add with alpha": ({ x, y }) => x.add(y, 3),
  "rsub with alpha": ({ x, y }) => x.rsub(y, 2),
  "division of integers": ({ n }) => n.div(2),
  "floor_divide of integers": ({ n }) => n.floorDivide(2),
  "floor_divide of floats": ({ x }) => x.floorDivide(0.7),
  "remainder of integers": ({ n }) => n.remainder(2),
  "remainder of floats": ({ x, y }) => x.remainder(y),
  pow: (all) => positive(all).pow(all.x),
  maximum: ({ x, y }) => x.maximum(y),
  "logical_not of integers": ({ n }) => n.logicalNot(),
  "bitwise_not of bools": ({ n }) => n.eq(0).bitwiseNot(),
  logical_xor: ({ x, n }) => x.gt(0).logicalXor(n),
  masked_fill: ({ x, n }) => x.maskedFill(n.gt(0), -7),
  where: ({ x, y, n }) => ops.where(n.gt(0), x, y),
  clamp: ({ x }) => x.clamp(-1, 2),
  clamp_max: ({ x }) => x.clampMax(0.5),
  sum: ({ x }) => x.sum([0], true),
  "sum of all": ({ x }) => x.sum(),
  mean: ({ x }) => x.mean([-1]),
  amax: ({ x }) => x.amax([1]),
  logsumexp: ({ x }) => x.logsumexp(1),
  prod: ({ x }) => ops.prodDim(x, 1),
  argmax: ({ x }) => x.argmax(1),
  "argmax of all": ({ x }) => x.argmax(),
  cumsum: ({ x }) => x.cumsum(1),
  softmax: ({ x }) => x.softmax(0),
  log_softmax: ({ x }) => x.logSoftmax(-1),
  log_sigmoid: ({ x }) => x.logSigmoid(),
  "1-norm": ({ x }) => x.linalgVectorNorm(1, [1]),
  gelu: ({ x }) => x.gelu(),
  "gelu by tanh": ({ x }) => x.gelu("tanh"),
  silu: ({ x }) => x.silu(),
  elu: ({ x }) => x.elu(0.7),
  leaky_relu: ({ x }) => x.leakyRelu(0.3),
  relu6: ({ x }) => x.mul(3).relu6(),
  hardsigmoid: ({ x }) => x.hardsigmoid(),
  rsqrt: (all) => positive(all).rsqrt(),
  log1p: (all) => ops.log1p(positive(all)),
  "layer_norm without weights": ({ x }) => ops.layerNorm(x, [6]),
  "batch_norm without weights": ({ x, y }) =>
    ops.batchNorm(x, undefined, undefined, y.select(0, 0), y.abs().select(0, 1), false, 0.1, 1e-5, false),
  "group_norm without weights": ({ x }) => ops.groupNorm(x.unsqueeze(0), 2),
  gather: ({ x, n }) => x.gather(1, n.abs()),
  index_select: ({ x, n }) => x.indexSelect(1, n.abs().select(0, 0)),
  "select from the end": ({ x }) => x.select(1, -1),
  "slice with a step": ({ x }) => x.slice(1, -5, -1, 2),
  narrow: ({ x }) => x.narrow(1, 2, 3),
  unfold: ({ x }) => x.unfold(1, 3, 2),
  flip: ({ x }) => x.flip([0, 1]),
  tril: ({ x }) => x.tril(-1),
  triu: ({ x }) => x.triu(1),
  permute: ({ x }) => x.unsqueeze(0).permute([2, 0, 1]),
  repeat: ({ x }) => x.repeat([2, 1, 3]),
  cat: ({ x, y }) => ops.cat([x, y], 1),
  stack: ({ x, y }) => ops.stack([x, y], -1),
  chunk: ({ x }) => x.chunk(2, 1)[1] as Tensor,
  unbind: ({ x }) => x.unbind(0)[2] as Tensor,
  pad: ({ x }) => ops.constantPadNd(x, [1, 2, 0, 1], 5),
  arange: ({ x }) => x.add(ops.arange(0, 6)),
  avg_pool1d: ({ x }) => ops.avgPool1d(x.unsqueeze(0), [2], [2], [1]),
  max_pool1d: ({ x }) => ops.maxPool1d(x.unsqueeze(0), [3], [2], [1]),
};

function write(path: string, compute: (given: Operands) => Tensor): Promise<string[]> {
  const model = new Expression(compute);
  return writeOnnx(path, model, {
    inputs: { x: { shape }, y: { shape }, n: { shape, dtype: "int64" } },
    run: (inputs) => ({ made: model.forward(inputs as Operands).to("float32") }),
  });
}

let place: string;
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "troupe-operators-"));
});
afterAll(() => rm(place, { recursive: true }));

it.each(Object.keys(cases))("is computed as libtorch does: %s", async (name) => {
  const compute = cases[name] as (given: Operands) => Tensor;
  const path = join(place, `${name}.onnx`);
  await write(path, compute);
  const { made } = await (await OnnxModel.open(path)).run(given);
  scope(() =>
    noGrad(() => {
      const operands = {
        x: asTensor(given.x, "float32"),
        y: asTensor(given.y, "float32"),
        n: asTensor(given.n, "int64"),
      };
      expect(difference(made as Given, compute(operands))).toBeLessThan(1e-5);
    }),
  );
});

it.each<readonly [string, (given: Operands) => Tensor, RegExp]>([
  ["bitwise_not of integers", ({ n }) => n.bitwiseNot(), /got bitwise_not of int64/],
  ["elu with a scale", ({ x }) => x.elu(1, 2), /got aten::elu with scale 2/],
  [
    "avg_pool2d with a divisor",
    ({ x }) => ops.avgPool2d(x.unsqueeze(0), [2, 2], [2, 2], [0, 0], false, true, 3),
    /got aten::avg_pool2d with divisor_override 3/,
  ],
])("is refused, since ONNX lacks it: %s", async (_, compute, message) => {
  await expect(write(join(place, "refused.onnx"), compute)).rejects.toThrow(message);
});
