import { describe, expect, it } from "vitest";
import { call, frame } from "../../src/compute/tensor/frame.ts";
import { arange, nativeInfo, ones, ops, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { native } from "../../src/compute/tensor/native.ts";
import { schemas } from "../../src/compute/tensor/schemas.generated.ts";
import { expectClose, numbers, refusal } from "./numbers.ts";

const row = () => tensor([1, -2, 3]);
const grid = () =>
  tensor([
    [1, 2, 3],
    [4, 5, 6],
  ]);
const ids = (...values: number[]) => tensor(values, { dtype: "int64" });
const mask = (...values: number[]) => tensor(values, { dtype: "bool" });

type Case = readonly [name: string, result: () => Tensor, expected: readonly number[]];

function check(cases: readonly Case[]): void {
  it.each(cases)("%s", (_, result, expected) => {
    expectClose(numbers(result()), expected, 1e-6);
  });
}

describe("arithmetic", () => {
  check([
    ["add of tensors with alpha", () => row().add(row(), 2), [3, -6, 9]],
    ["add of a number", () => row().add(0.5), [1.5, -1.5, 3.5]],
    ["add broadcasting", () => grid().add(row()), [2, 0, 6, 5, 3, 9]],
    ["sub", () => row().sub(1, 2), [-1, -4, 1]],
    ["rsub", () => row().rsub(10), [9, 12, 7]],
    ["mul", () => row().mul(row()), [1, 4, 9]],
    ["div", () => row().div(2), [0.5, -1, 1.5]],
    ["div of integers gives floats", () => ids(1, 2).div(4), [0.25, 0.5]],
    ["floorDivide", () => ids(7, -7).floorDivide(2), [3, -4]],
    ["remainder has the sign of the divisor", () => tensor([7, -7]).remainder(3), [1, 2]],
    ["fmod has the sign of the dividend", () => tensor([7, -7]).fmod(3), [1, -1]],
    [
      "neg, abs, sign",
      () => ops.stack([row().neg(), row().abs(), row().sign()]),
      [-1, 2, -3, 1, 2, 3, 1, -1, 1],
    ],
    ["square and sqrt", () => row().square().sqrt(), [1, 2, 3]],
    ["rsqrt and reciprocal", () => tensor([4, 16]).rsqrt().reciprocal(), [2, 4]],
    [
      "pow by number and by tensor",
      () => ops.cat([tensor([2, 3]).pow(2), tensor([2, 3]).pow(tensor([3, 0]))]),
      [4, 9, 8, 1],
    ],
    ["exp and log", () => tensor([0, 1]).exp().log(), [0, 1]],
    ["expm1 and log1p", () => tensor([0, 1e-8], { dtype: "float64" }).expm1().log1p().mul(1e8), [0, 1]],
    [
      "sin, cos, erf",
      () => ops.stack([tensor(1).sin(), tensor(1).cos(), tensor(1).erf()]),
      [0.841471, 0.540302, 0.842701],
    ],
    [
      "floor, ceil, round, trunc",
      () =>
        ops.stack([tensor(-1.5).floor(), tensor(-1.5).ceil(), tensor(-2.5).round(), tensor(-1.5).trunc()]),
      [-2, -1, -2, -1],
    ],
    ["clamp", () => row().clamp(-1, 2), [1, -1, 2]],
    ["clamp without a lower limit", () => row().clamp(undefined, 0), [0, -2, 0]],
    ["clampMin with a tensor", () => row().clampMin(tensor([2, 0, 0])), [2, 0, 3]],
    [
      "maximum and minimum",
      () => ops.stack([row().maximum(tensor([0, 0, 9])), row().minimum(tensor([0, 0, 9]))]),
      [1, 0, 9, 0, -2, 3],
    ],
    [
      "addcmul and addcdiv",
      () => ops.stack([row().addcmul(row(), row(), 2), row().addcdiv(row(), row(), 2)]),
      [3, 6, 21, 3, 0, 5],
    ],
    ["lerp", () => row().lerp(zeros([3]), 0.5), [0.5, -1, 1.5]],
    [
      "isnan and isfinite",
      () => ops.stack([tensor([Number.NaN, 1]).isnan(), tensor([1, Number.POSITIVE_INFINITY]).isfinite()]),
      [1, 0, 1, 0],
    ],
    ["nanToNum", () => tensor([Number.NaN, 1]).nanToNum(5), [5, 1]],
  ]);

  it("keeps integers integer under whole numbers, not under others", () => {
    expect(ids(1, 2).add(2).dtype).toBe("int64");
    expect(ids(1, 2).add(2.5).dtype).toBe("float32");
  });

  it("keeps the sign of zero in a number argument", () => {
    expect(Object.is(tensor([-0]).mul(1).item(), -0)).toBe(true);
    expect(Object.is(zeros([1]).fill_(-0).item(), -0)).toBe(true);
  });

  it("changes the tensor itself under a trailing underscore and returns it", () => {
    const t = row();
    expect(t.add_(1)).toBe(t);
    expect(
      numbers(
        t
          .mul_(tensor([1, 2, 3]))
          .sub_(1)
          .div_(2),
      ),
    ).toEqual([0.5, -1.5, 5.5]);
    expect(numbers(t.zero_().fill_(3).addcmul_(t.clone(), t.clone(), -1))).toEqual([-6, -6, -6]);
    expect(
      numbers(
        t
          .copy_(tensor([9]))
          .neg_()
          .abs_()
          .sqrt_(),
      ),
    ).toEqual([3, 3, 3]);
  });
});

describe("activations", () => {
  const gelu = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
  check([
    ["relu", () => row().relu(), [1, 0, 3]],
    ["gelu, tanh form", () => row().gelu("tanh"), [gelu(1), gelu(-2), gelu(3)]],
    ["gelu, exact", () => tensor([1, -1]).gelu(), [0.841345, -0.158655]],
    ["silu", () => row().silu(), [sigmoid(1), -2 * sigmoid(-2), 3 * sigmoid(3)]],
    ["sigmoid", () => row().sigmoid(), [sigmoid(1), sigmoid(-2), sigmoid(3)]],
    ["softplus", () => tensor([0]).softplus(), [Math.log(2)]],
    ["leakyRelu with a slope", () => row().leakyRelu(0.1), [1, -0.2, 3]],
    ["glu", () => tensor([2, 0]).glu(), [1]],
    ["softmax", () => tensor([0, Math.log(3)]).softmax(0), [0.25, 0.75]],
    ["logSoftmax", () => tensor([0, Math.log(3)]).logSoftmax(-1), [Math.log(0.25), Math.log(0.75)]],
  ]);
});

describe("comparison and logic", () => {
  check([
    [
      "eq, lt, ge",
      () => ops.stack([row().eq(1), row().lt(zeros([3])), row().ge(1)]),
      [1, 0, 0, 0, 1, 0, 1, 0, 1],
    ],
    [
      "logical and, or, not",
      () =>
        ops.stack([
          mask(1, 0).logicalAnd(mask(1, 1)),
          mask(1, 0).logicalOr(mask(0, 0)),
          mask(1, 0).logicalNot(),
        ]),
      [1, 0, 1, 0, 0, 1],
    ],
    [
      "bitwise",
      () => ops.stack([ids(6).bitwiseAnd(3), ids(6).bitwiseOr(ids(1)), ids(6).bitwiseXor(2)]),
      [2, 7, 4],
    ],
    [
      "any and all along a dim",
      () =>
        ops.cat([
          tensor([[1, 0]])
            .gt(0)
            .anyDim(1),
          tensor([[1, 0]])
            .gt(0)
            .allDim(1),
        ]),
      [1, 0],
    ],
  ]);

  it("answers equal and allclose with booleans", () => {
    expect(row().equal(row())).toBe(true);
    expect(row().equal(grid())).toBe(false);
    expect(row().allclose(row().add(1e-7))).toBe(true);
    expect(row().allclose(row().add(1e-3))).toBe(false);
  });
});

describe("reductions", () => {
  check([
    ["sum of all", () => grid().sum(), [21]],
    ["sum over a dim", () => grid().sum(0), [5, 7, 9]],
    ["sum over dims, kept, in another dtype", () => grid().sum([0, 1], true, "float64"), [21]],
    ["mean", () => grid().mean([1]), [2, 5]],
    ["prod", () => grid().prod(), [720]],
    ["amax and amin", () => ops.stack([grid().amax(1), grid().amin(1)]), [3, 6, 1, 4]],
    ["argmax", () => row().argmax(), [2]],
    [
      "std and variance",
      () =>
        ops.stack([tensor([1, 3]).std(), tensor([1, 3]).variance(), tensor([1, 3]).variance(undefined, 0)]),
      [Math.SQRT2, 2, 1],
    ],
    ["logsumexp", () => tensor([0, 0]).logsumexp(0), [Math.log(2)]],
    ["linalgVectorNorm", () => tensor([3, 4]).linalgVectorNorm(), [5]],
    ["cumsum", () => row().cumsum(0), [1, -1, 2]],
    ["bincount", () => ids(1, 1, 3).bincount(), [0, 2, 0, 1]],
    ["searchsorted", () => ops.searchsorted(tensor([1, 2, 3]), tensor([2.5, 0])), [2, 0]],
  ]);

  it("returns values and positions as a pair", () => {
    const [values, indices] = grid().maxDim(1);
    expect(numbers(values)).toEqual([3, 6]);
    expect(numbers(indices)).toEqual([2, 2]);
    const [top, where] = row().topk(2);
    expect([numbers(top), numbers(where)]).toEqual([
      [3, 1],
      [2, 0],
    ]);
    const [sorted] = row().sort(0, true);
    expect(numbers(sorted)).toEqual([3, 1, -2]);
  });
});

describe("linear algebra", () => {
  const square = () =>
    tensor([
      [1, 2],
      [3, 4],
    ]);
  check([
    ["matmul", () => square().matmul(square()), [7, 10, 15, 22]],
    [
      "mm and mv",
      () => ops.cat([square().mm(square()).flatten(), square().mv(tensor([1, 1]))]),
      [7, 10, 15, 22, 3, 7],
    ],
    ["bmm", () => square().unsqueeze(0).bmm(square().unsqueeze(0)), [7, 10, 15, 22]],
    ["addmm with beta and alpha", () => square().addmm(square(), square(), 2, 10), [72, 104, 156, 228]],
    ["linear", () => ops.linear(tensor([[1, 1]]), square(), tensor([0.5, 0])), [3.5, 7]],
    ["linear without bias", () => ops.linear(tensor([[1, 1]]), square()), [3, 7]],
    ["einsum", () => ops.einsum("ij,kj->ik", [square(), square()]), [5, 11, 11, 25]],
    [
      "dot and outer",
      () =>
        ops.cat([
          tensor([1, 2])
            .dot(tensor([3, 4]))
            .view([1]),
          tensor([1, 2])
            .outer(tensor([3, 4]))
            .flatten(),
        ]),
      [11, 3, 4, 6, 8],
    ],
    ["trace and diag", () => ops.cat([square().trace().view([1]), square().diag()]), [5, 1, 4]],
    ["linalgInv", () => ops.linalgInv(square()), [-2, 1, 1.5, -0.5]],
  ]);

  it("takes attention with a causal mask", (context) => {
    if (nativeInfo().torch.startsWith("1.")) context.skip("libtorch 1 has no scaled_dot_product_attention");
    const query = zeros([1, 1, 2, 2]);
    const value = tensor([
      [1, 2],
      [3, 4],
    ]).view([1, 1, 2, 2]);
    const out = ops.scaledDotProductAttention(query, query, value, undefined, 0, true);
    expect(numbers(out)).toEqual([1, 2, 2, 3]);
  });
});

describe("normalization, embeddings and losses", () => {
  const logits = () => tensor([[0, Math.log(3)]]);
  check([
    ["layerNorm", () => ops.layerNorm(tensor([1, 3]), [2], ones([2]), tensor([0, 1]), 0), [-1, 2]],
    ["embedding", () => ops.embedding(grid(), ids(1, 0, 1)), [4, 5, 6, 1, 2, 3, 4, 5, 6]],
    ["oneHot", () => ids(2, 0).oneHot(3), [0, 0, 1, 1, 0, 0]],
    ["crossEntropyLoss, mean", () => ops.crossEntropyLoss(logits(), ids(0)), [Math.log(4)]],
    [
      "crossEntropyLoss ignoring a class",
      () => ops.crossEntropyLoss(ops.cat([logits(), logits()]), ids(0, -1), undefined, 2, -1),
      [Math.log(4)],
    ],
    ["nllLoss", () => ops.nllLoss(logits().logSoftmax(1), ids(1)), [-Math.log(0.75)]],
    ["mseLoss, sum", () => ops.mseLoss(row(), zeros([3]), 2), [14]],
    ["huberLoss", () => ops.huberLoss(tensor([0.5, 3]), zeros([2]), 0), [0.125, 2.5]],
    [
      "binaryCrossEntropyWithLogits",
      () => ops.binaryCrossEntropyWithLogits(zeros([1]), ones([1])),
      [Math.log(2)],
    ],
  ]);
});

describe("convolution and pooling", () => {
  const signal = () => tensor([1, 2, 3, 4]).view([1, 1, 4]);
  check([
    ["conv1d", () => ops.conv1d(signal(), tensor([1, -1]).view([1, 1, 2])), [-1, -1, -1]],
    [
      "conv1d, one number for stride and padding",
      () => ops.conv1d(signal(), ones([1, 1, 2]), undefined, 2, 1),
      [1, 5, 4],
    ],
    [
      "convolution, generic",
      () => ops.convolution(signal(), ones([1, 1, 2]), undefined, [2], [0], [1], false, [0], 1),
      [3, 7],
    ],
    ["conv2d", () => ops.conv2d(grid().view([1, 1, 2, 3]), ones([1, 1, 2, 2])), [12, 16]],
    [
      "maxPool1d and avgPool1d",
      () => ops.cat([ops.maxPool1d(signal(), 2), ops.avgPool1d(signal(), 2)], 2),
      [2, 4, 1.5, 3.5],
    ],
    ["pad", () => row().pad([1, 2], "constant", 9), [9, 1, -2, 3, 9, 9]],
    ["unfold", () => tensor([1, 2, 3]).unfold(0, 2, 1), [1, 2, 2, 3]],
  ]);
});

describe("indexing", () => {
  check([
    ["indexSelect", () => grid().indexSelect(1, ids(2, 0)), [3, 1, 6, 4]],
    ["gather", () => grid().gather(1, tensor([[2], [0]], { dtype: "int64" })), [3, 4]],
    [
      "scatter of a tensor and of a value",
      () =>
        zeros([3])
          .scatter(0, ids(2, 0), tensor([5, 6]))
          .add(zeros([3]).scatter(0, ids(1), 1)),
      [6, 1, 5],
    ],
    ["scatterAdd", () => zeros([2]).scatterAdd(0, ids(1, 1), tensor([2, 3])), [0, 5]],
    ["scatterReduce", () => ones([2]).scatterReduce(0, ids(0, 0), tensor([4, 2]), "amax"), [4, 1]],
    ["index with a gap", () => grid().index([undefined, ids(1)]), [2, 5]],
    ["indexPut", () => grid().indexPut([ids(0), ids(1)], tensor([9])), [1, 9, 3, 4, 5, 6]],
    ["indexPut accumulating", () => zeros([2]).indexPut([ids(1, 1)], tensor([2, 3]), true), [0, 5]],
    ["indexAdd with alpha", () => zeros([2]).indexAdd(0, ids(1), tensor([2]), 3), [0, 6]],
    ["maskedFill", () => row().maskedFill(mask(0, 1, 0), 7), [1, 7, 3]],
    ["maskedSelect", () => row().maskedSelect(mask(1, 0, 1)), [1, 3]],
    [
      "where of tensors, and with a number",
      () => ops.stack([ops.where(mask(1, 0, 1), row(), zeros([3])), ops.where(mask(1, 0, 1), row(), 8)]),
      [1, 0, 3, 1, 8, 3],
    ],
    ["nonzero", () => tensor([0, 5, 6]).nonzero(), [1, 2]],
    [
      "narrow and select",
      () => ops.cat([grid().narrow(1, 1, 2).flatten(), grid().select(0, -1)]),
      [2, 3, 5, 6, 4, 5, 6],
    ],
    ["slice with a step, open at both ends", () => arange(5).slice(0, undefined, undefined, 2), [0, 2, 4]],
    ["tril and triu", () => ops.stack([ones([2, 2]).tril(), ones([2, 2]).triu(1)]), [1, 0, 1, 1, 0, 1, 0, 0]],
    [
      "flip, roll, repeat",
      () => ops.cat([row().flip([0]), row().roll(1), row().repeat([2])]),
      [3, -2, 1, 3, 1, -2, 1, -2, 3, 1, -2, 3],
    ],
    [
      "repeatInterleave",
      () => ops.cat([ids(1, 2).repeatInterleave(2), ids(1, 2).repeatInterleave(ids(1, 2))]),
      [1, 1, 2, 2, 1, 2, 2],
    ],
  ]);
});

describe("shape", () => {
  it("views share memory, copies do not", () => {
    const t = grid();
    t.view([3, -1]).select(0, 0).fill_(9);
    t.t().contiguous().zero_();
    expect(numbers(t)).toEqual([9, 9, 3, 4, 5, 6]);
  });

  it("gives the shapes that torch gives", () => {
    const t = zeros([2, 3, 4]);
    expect(t.transpose(0, 2).shape).toEqual([4, 3, 2]);
    expect(t.permute([1, 2, 0]).shape).toEqual([3, 4, 2]);
    expect(t.flatten(1).shape).toEqual([2, 12]);
    expect(t.flatten(1).unflatten(1, [3, 4]).shape).toEqual([2, 3, 4]);
    expect(t.unsqueeze(0).squeeze(0).shape).toEqual([2, 3, 4]);
    expect(zeros([1, 2]).expand([5, -1]).shape).toEqual([5, 2]);
    expect(t.movedim(0, 2).shape).toEqual([3, 4, 2]);
    expect(t.mT().shape).toEqual([2, 4, 3]);
  });

  it("operators join and split tensors", () => {
    expect(numbers(ops.cat([row(), row()], 0))).toEqual([1, -2, 3, 1, -2, 3]);
    expect(ops.stack([row(), row()], 1).shape).toEqual([3, 2]);
    expect(arange(5).split(2).map(numbers)).toEqual([[0, 1], [2, 3], [4]]);
    expect(arange(5).split([1, 4]).map(numbers)).toEqual([[0], [1, 2, 3, 4]]);
    expect(arange(4).chunk(2).map(numbers)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(grid().unbind().map(numbers)).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(ops.meshgrid([arange(2), arange(3)], "ij").map((t) => t.shape)).toEqual([
      [2, 3],
      [2, 3],
    ]);
  });

  it("makes new tensors like others", () => {
    expect(numbers(grid().zerosLike())).toEqual([0, 0, 0, 0, 0, 0]);
    expect(grid().onesLike("int32").dtype).toBe("int32");
    expect(numbers(ops.eye(2, 3))).toEqual([1, 0, 0, 0, 1, 0]);
    expect(numbers(ops.linspace(0, 1, 3))).toEqual([0, 0.5, 1]);
    expect(numbers(ops.trilIndices(2, 2))).toEqual([0, 1, 1, 0, 0, 1]);
  });
});

describe("wrong types", () => {
  it("do not compile", () => {
    const bodies = [
      // @ts-expect-error a string is no operand
      () => zeros([1]).add("1"),
      // @ts-expect-error shapes are numbers
      () => zeros([1]).view(["1"]),
      // @ts-expect-error there is no such dtype
      () => zeros([1]).to("complex64"),
      // @ts-expect-error a list is missing
      () => ops.cat(zeros([1])),
    ];
    expect(bodies).toHaveLength(4);
  });

  it("are refused when types were not checked", () => {
    const wrong = (value: unknown) => value as Tensor;
    expect(refusal(() => zeros([1]).add(wrong({})))).toMatchObject({ code: "TENSOR_ARGUMENT" });
    expect(refusal(() => zeros([1]).add(wrong({ handle: 2 ** 40 })))).toMatchObject({
      code: "TENSOR_DISPOSED",
    });
    expect(refusal(() => zeros([1]).add(wrong({ handle: -1 })))).toMatchObject({ code: "TENSOR_DISPOSED" });
  });
});

describe("the generated table", () => {
  // Operators of newer libtorch releases that the oldest supported one lacks or has with other arguments.
  const newerThanOne = new Set(["scaled_dot_product_attention", "rms_norm"]);

  it("calls every operator the way the installed libtorch wants it", () => {
    const refused = schemas.filter((_, index) => {
      frame.fill(0);
      const code = refusal(() => native().release(call(index)))?.code;
      return code === "TENSOR_OP_MISSING" || code === "TENSOR_OP_CHANGED";
    });
    const unexpected = refused.filter((schema) => !newerThanOne.has(schema.replace(/^aten::(\w+).*$/, "$1")));
    expect(unexpected).toEqual([]);
    if (!nativeInfo().torch.startsWith("1.")) expect(refused).toEqual([]);
  });

  it("lists every kernel of Troupe with the schema it is registered under", () => {
    const own = schemas.filter((schema) => schema.startsWith("troupe::"));
    expect(own.toSorted()).toEqual(native().schemas("troupe").toSorted());
  });
});
