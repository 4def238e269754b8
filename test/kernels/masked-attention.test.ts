import { describe, expect, it } from "vitest";
import { explicitAttention } from "../../src/nn/attention.ts";
import { ones, ops, setNumThreads, type Tensor, zeros } from "../../src/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";
import {
  exact,
  expectNear,
  expectSame,
  type FloatType,
  gradientsOf,
  normal,
  productTypes,
  roundingError,
} from "./inputs.ts";

interface Given {
  readonly sizes: readonly [
    batch: number,
    heads: number,
    groups: number,
    rows: number,
    keys: number,
    width: number,
  ];
  readonly mask?: readonly number[];
  readonly bias?: readonly number[];
  readonly causal?: boolean;
  readonly window?: number;
}

/** As a model has them: cut from projections [B, T, H, K], so none is contiguous. */
function inputs({ sizes, bias }: Given, dtype: FloatType): Tensor[] {
  const [batch, heads, groups, rows, keys, width] = sizes;
  const cut = (shape: number[], stream: number) =>
    normal(shape, stream, { dtype }).transpose(1, 2).requiresGrad_();
  const all = [
    cut([batch, rows, heads, width], 1),
    cut([batch, keys, groups, width], 2),
    cut([batch, keys, groups, width], 3),
  ];
  return bias === undefined ? all : [...all, normal(bias, 4, { dtype }).requiresGrad_()];
}

function attend([q, k, v, bias]: readonly Tensor[], { mask, causal = false, window = 0 }: Given): Tensor {
  return ops.troupe.maskedAttention(
    q as Tensor,
    k as Tensor,
    v as Tensor,
    maskOf(mask),
    bias,
    causal,
    window,
    0.3,
  );
}

function reference([q, k, v, bias]: readonly Tensor[], { mask, causal = false, window }: Given): Tensor {
  const options = { mask: maskOf(mask), bias, causal, window, scale: 0.3 };
  return explicitAttention(q as Tensor, k as Tensor, v as Tensor, options);
}

/** The first row of the last batch sees nothing where a mask is of every batch. */
function maskOf(shape: readonly number[] | undefined): Tensor | undefined {
  if (shape === undefined) return undefined;
  const mask = normal(shape, 9).gt(-0.3);
  if ((shape[0] ?? 1) > 1)
    mask
      .narrow(0, (shape[0] ?? 1) - 1, 1)
      .narrow(2, 0, 1)
      .fill_(0);
  return mask;
}

const cases: readonly Given[] = [
  { sizes: [2, 3, 3, 5, 7, 8] },
  { sizes: [2, 6, 2, 5, 5, 8], causal: true },
  { sizes: [1, 6, 1, 300, 300, 16], causal: true, window: 40 }, // more rows than a block has, few keys of each
  { sizes: [2, 4, 4, 6, 9, 8], causal: true, window: 3 },
  { sizes: [2, 2, 1, 9, 6, 8], causal: true }, // the first rows lie before every key
  { sizes: [3, 4, 2, 11, 33, 8], mask: [3, 1, 1, 33] },
  { sizes: [2, 4, 2, 40, 40, 8], mask: [2, 4, 40, 40], causal: true },
  { sizes: [3, 4, 4, 17, 35, 8], bias: [1, 4, 17, 35] },
  { sizes: [2, 4, 2, 17, 17, 8], bias: [2, 1, 1, 17], mask: [1, 1, 17, 17], window: 4 },
  { sizes: [2, 4, 1, 150, 150, 8], bias: [1, 4, 150, 150], mask: [2, 1, 1, 150], causal: true },
  { sizes: [1, 2, 2, 1030, 1030, 8], mask: [1, 1, 1, 1030], causal: true }, // more scores than exist at a time
];
const titled = cases.flatMap((given) =>
  productTypes.map((dtype) => [JSON.stringify(given), dtype, given] as const),
);

describe("masked_attention", () => {
  it.each(titled)("agrees with its definition in float64: %s in %s", (_, dtype, given) => {
    const own = inputs(given, dtype);
    const wide = own.map(exact);
    const out = attend(own, given);
    const expected = reference(wide, given);
    expect(out.dtype).toBe(dtype);
    expectNear(out, expected, 2 * roundingError[dtype]);
    const dout = normal(out.shape, 8, { dtype });
    const wanted = gradientsOf([expected], wide, [dout.to("float64")]);
    // Probabilities and their gradients are rounded before the products that sum them.
    gradientsOf([out], own, [dout]).forEach((gradient, i) => {
      expectNear(gradient, wanted[i] as Tensor, 6 * roundingError[dtype]);
    });
  });

  it("gives the same bits for every number of threads, the gradient of a shared bias included", () => {
    const shared: Given = {
      sizes: [3, 4, 2, 160, 160, 16],
      bias: [1, 1, 1, 160],
      mask: [3, 1, 1, 160],
      causal: true,
    };
    for (const given of [shared, { ...shared, bias: [1, 4, 160, 160] }]) {
      const [one, two] = [1, 2].map((numThreads) => {
        setNumThreads(numThreads);
        const own = inputs(given, "float32");
        const out = attend(own, given);
        return [out, ...gradientsOf([out], own, [ones(out.shape)])];
      }) as [Tensor[], Tensor[]];
      setNumThreads(1);
      one.forEach((result, i) => {
        expectSame(two[i] as Tensor, result);
      });
    }
  });

  it("lets no row see what is hidden from it, NaN included where no row of a block sees it", () => {
    const given: Given = { sizes: [1, 4, 2, 200, 200, 8], causal: true, window: 20 };
    const [q, k, v] = inputs(given, "float32").map((t) => t.detach().contiguous()) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const before = attend([q, k, v], given);
    k.narrow(2, 150, 50).fill_(Number.NaN);
    const after = attend([q, k, v], given);
    expectSame(after.narrow(2, 0, 128).contiguous(), before.narrow(2, 0, 128).contiguous());
  });

  it("stays finite for scores that overflow exp, and takes no rows and no keys", () => {
    const q = normal([1, 2, 4, 8], 1, { std: 100 });
    const k = q.narrow(1, 0, 1);
    const out = ops.troupe.maskedAttention(q, k, k, undefined, undefined, true, 2, 1);
    expect(ops.isfinite(out).all().item()).toBeTruthy();
    const none = ops.troupe.maskedAttention(q.narrow(2, 0, 0), k, k, undefined, undefined, false, 0, 1);
    expect(none.shape).toEqual([1, 2, 0, 8]);
    const keyless = k.narrow(2, 0, 0);
    expectSame(
      ops.troupe.maskedAttention(q, keyless, keyless, undefined, undefined, false, 0, 1),
      zeros([1, 2, 4, 8]),
    );
  });

  it("refuses heads that are no multiple of the groups, mixed dtypes, and masks and biases of other shapes", () => {
    const [q, k] = [zeros([2, 4, 3, 8]), zeros([2, 3, 7, 8])];
    const call = (keys: Tensor, mask?: Tensor, bias?: Tensor) =>
      refusal(() => ops.troupe.maskedAttention(q, keys, keys, mask, bias, false, 0, 1))?.message;
    expect(call(k)).toContain("groups that divide the heads");
    const even = zeros([2, 2, 7, 8]);
    expect(call(even.to("bfloat16"))).toContain("must all be float32");
    expect(call(even, zeros([2, 1, 1, 7]))).toContain("mask must be bool");
    expect(call(even, zeros([2, 1, 1, 6]).gt(0))).toContain("mask must be bool");
    expect(call(even, undefined, zeros([3, 1, 1, 7]))).toContain("bias must be floating");
  });
});
