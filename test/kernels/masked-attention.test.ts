import { describe, expect, it } from "vitest";
import { explicitAttention } from "../../src/compute/nn/attention/attention.ts";
import type { Dropout } from "../../src/compute/nn/index.ts";
import {
  hasTileProducts,
  memory,
  ones,
  ops,
  resetPeakMemory,
  scope,
  setNumThreads,
  setTileProducts,
  type Tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
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
    expect(call(even.to("bfloat16"))).toContain("all to be float32");
    expect(call(even, zeros([2, 1, 1, 7]))).toContain("mask to be bool");
    expect(call(even, zeros([2, 1, 1, 6]).gt(0))).toContain("mask to be bool");
    expect(call(even, undefined, zeros([3, 1, 1, 7]))).toContain("bias to be floating");
  });
});

/** The places of a piece's weights in the complete tensor, and the draws there. */
interface Draw {
  readonly p: number;
  readonly offset?: number;
  readonly run?: number;
  readonly stride?: number;
}

function attendDropped(
  [q, k, v, bias]: readonly Tensor[],
  { mask, causal = false, window = 0, sizes }: Given,
  { p, offset = 0, run, stride }: Draw,
): Tensor {
  const [batch, heads, , rows, keys] = sizes;
  const whole = batch * heads * rows * keys;
  return ops.troupe.droppedAttention(
    ...([q, k, v] as [Tensor, Tensor, Tensor]),
    maskOf(mask),
    bias,
    causal,
    window,
    0.3,
    p,
    17,
    5,
    offset,
    run ?? whole,
    stride ?? whole,
  );
}

// Over several sums' rows and ragged ones; in groups; with windows, of which the first keys are left out; with fewer or more keys, that begin
// within a tile; with rows that see nothing alone, first or last.
const tiled: readonly Given[] = [
  { sizes: [2, 6, 2, 300, 300, 32], causal: true },
  { sizes: [1, 6, 2, 701, 701, 32], causal: true, window: 100 },
  { sizes: [1, 2, 2, 130, 260, 64], window: 70 },
  { sizes: [2, 4, 4, 70, 140, 32], causal: true },
  { sizes: [1, 2, 1, 200, 90, 64], causal: true },
  { sizes: [1, 2, 1, 300, 301, 32], causal: true, window: 40 },
  { sizes: [3, 4, 2, 130, 130, 96], mask: [3, 1, 1, 130], causal: true },
  { sizes: [2, 4, 4, 260, 260, 32], mask: [2, 4, 260, 260] },
  { sizes: [2, 2, 2, 17, 67, 128], mask: [1, 1, 1, 67], bias: [2, 1, 17, 67] },
];

describe("attention over tiles", () => {
  const dropped: Draw = { p: 0.3 };
  it.each(
    tiled.flatMap((given) =>
      [undefined, dropped].map((draw) => [JSON.stringify({ ...given, ...draw }), given, draw] as const),
    ),
  )("agrees with its definition in float64, with the same bits on two threads: %s", (_, given, draw) => {
    const { bias, mask, causal = false, window } = given;
    const own = inputs({ sizes: given.sizes }, "bfloat16");
    const added = bias && normal(bias, 4, { dtype: "bfloat16" });
    const all = [...own, ...(added ? [added] : [])];
    const dout = normal(own[0]?.shape ?? [], 8, { dtype: "bfloat16" });
    const run = (numThreads: number) => {
      setNumThreads(numThreads);
      const out = draw ? attendDropped(all, given, draw) : attend(all, given);
      return [out, ...gradientsOf([out], own, [dout])];
    };
    const before = setTileProducts(true);
    const results = run(1);
    const others = run(2);
    setTileProducts(before);
    const untiled = run(1);

    const wide = own.map(exact) as [Tensor, Tensor, Tensor];
    const factors = draw && factorsOf(given, draw.p).to("float64");
    const expected = explicitAttention(...wide, {
      ...{ mask: maskOf(mask), bias: added?.to("float64"), causal, window, scale: 0.3 },
      ...(factors && { dropout: { forward: (weights: Tensor) => weights.mul(factors) } as Dropout }),
    });
    const wanted = [expected, ...gradientsOf([expected], wide, [dout.to("float64")])];
    results.forEach((result, i) => {
      expectSame(others[i] as Tensor, result);
      // Probabilities and their gradients are rounded before the products that sum them.
      expectNear(result, wanted[i] as Tensor, (i === 0 ? 2 : 6) * roundingError.bfloat16);
    });
    if (hasTileProducts()) expect(numbers(results[1] as Tensor)).not.toEqual(numbers(untiled[1] as Tensor));
  });
});

/** The factors of the weights: the dropout operator's own result for ones. */
function factorsOf({ sizes: [batch, heads, , rows, keys] }: Given, p: number): Tensor {
  const whole = batch * heads * rows * keys;
  return ops.troupe.dropout(ones([batch, heads, rows, keys]), p, 17, 5, 0, whole, whole);
}

describe("dropped_attention", () => {
  it.each(titled)("drops what the dropout operator drops of the weights: %s in %s", (_, dtype, given) => {
    const own = inputs(given, dtype);
    const wide = own.map(exact);
    const [q, k, v, bias] = wide as [Tensor, Tensor, Tensor, Tensor | undefined];
    const factors = factorsOf(given, 0.3).to("float64");
    const { mask, causal = false, window } = given;
    const expected = explicitAttention(q, k, v, {
      ...{ mask: maskOf(mask), bias, causal, window, scale: 0.3 },
      dropout: { forward: (weights: Tensor) => weights.mul(factors) } as Dropout,
    });
    const out = attendDropped(own, given, { p: 0.3 });
    expect(out.dtype).toBe(dtype);
    expectNear(out, expected, 2 * roundingError[dtype]);
    const dout = normal(out.shape, 8, { dtype });
    const wanted = gradientsOf([expected], wide, [dout.to("float64")]);
    // As without dropout: probabilities and their gradients are rounded before the products that sum them.
    gradientsOf([out], own, [dout]).forEach((gradient, i) => {
      expectNear(gradient, wanted[i] as Tensor, 6 * roundingError[dtype]);
    });
  });

  it.each(cases.map((given) => [JSON.stringify(given), given] as const))(
    "has the bits of masked_attention where nothing is dropped: %s",
    (_, given) => {
      const own = inputs(given, "float32");
      const [dropped, plain] = [attendDropped(own, given, { p: 0 }), attend(own, given)];
      expectSame(dropped, plain);
      const dout = normal(plain.shape, 8);
      const wanted = gradientsOf([plain], own, [dout]);
      gradientsOf([dropped], own, [dout]).forEach((gradient, i) => {
        expectSame(gradient, wanted[i] as Tensor);
      });
    },
  );

  it("draws for some of the heads what it draws for them among all, in the same bits on every number of threads", () => {
    const given: Given = { sizes: [2, 4, 4, 150, 40, 8], causal: true };
    const own = inputs(given, "float32");
    const whole = attendDropped(own, given, { p: 0.4 });
    const half = (index: number) =>
      attendDropped(
        own.map((each) => each.narrow(1, 2 * index, 2)),
        { ...given, sizes: [2, 2, 2, 150, 40, 8] },
        { p: 0.4, offset: index * 2 * 150 * 40, run: 2 * 150 * 40, stride: 4 * 150 * 40 },
      );
    setNumThreads(2);
    const [first, second] = [half(0), half(1)];
    setNumThreads(1);
    expectSame(first.contiguous(), whole.narrow(1, 0, 2).contiguous());
    expectSame(second.contiguous(), whole.narrow(1, 2, 2).contiguous());
  });

  it("never holds all scores, forward and backward", () => {
    const given: Given = { sizes: [1, 8, 8, 2048, 2048, 8] };
    const own = inputs(given, "float32");
    scope(() => {
      resetPeakMemory();
      const before = memory().totalBytes;
      const out = attendDropped(own, given, { p: 0.1 });
      gradientsOf([out], own, [ones(out.shape)]);
      // All scores are 128 MiB; of a block and its gradients there are 4 MiB each, and copies of what products take.
      expect(memory().peakBytes - before).toBeLessThan(40 * 2 ** 20);
    });
  });

  it("refuses places that cut a row of keys, and a p that is no probability", () => {
    const given: Given = { sizes: [1, 2, 2, 3, 7, 8] };
    const own = inputs(given, "float32");
    const message = (draw: Draw) => refusal(() => attendDropped(own, given, draw))?.message;
    expect(message({ p: 0.1, run: 10 })).toContain("run to be full rows of 7 keys");
    expect(message({ p: 1.5 })).toContain("p to be a probability");
  });
});
