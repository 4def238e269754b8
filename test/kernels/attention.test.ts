import { describe, expect, it } from "vitest";
import {
  hasTileProducts,
  ones,
  ops,
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

/** Attention by its definition: scores, mask, softmax, weighted sum. */
function reference(q: Tensor, k: Tensor, v: Tensor, causal: boolean, scale: number): Tensor {
  const scores = q.matmul(k.transpose(-2, -1)).mul(scale);
  const future = ones([q.shape[2] ?? 0, k.shape[2] ?? 0], { dtype: "bool" }).triu(1);
  return (causal ? scores.maskedFill(future, Number.NEGATIVE_INFINITY) : scores).softmax(-1).matmul(v);
}

/** q, k and v as a model has them: cut from one projection [B, T, 3, H, K], so none is contiguous. */
function inputs(batch: number, heads: number, time: number, width: number, dtype: FloatType) {
  const projected = normal([batch, time, 3, heads, width], 1, { dtype });
  return [0, 1, 2].map((i) => projected.select(2, i).transpose(1, 2).requiresGrad_()) as [
    Tensor,
    Tensor,
    Tensor,
  ];
}

const shapes = [
  [1, 1, 2, 4, true],
  [2, 3, 5, 8, true],
  [2, 3, 5, 8, false],
  [6, 4, 64, 32, true],
  [1, 2, 300, 16, true], // rows in blocks of 128, the last one ragged
  [1, 2, 129, 16, false],
  [1, 1, 1030, 8, true],
] as const;
const cases = shapes.flatMap((shape) => productTypes.map((dtype) => [...shape, dtype] as const));

describe("attention", () => {
  it.each(cases)(
    "agrees with float64 on [%i,%i,%i,%i], causal %s, in %s",
    (batch, heads, time, width, causal, dtype) => {
      const given = inputs(batch, heads, time, width, dtype);
      const scale = width ** -0.5;
      const out = ops.troupe.attention(...given, causal, scale);
      const wide = given.map(exact) as [Tensor, Tensor, Tensor];
      const expected = reference(...wide, causal, scale);
      expect(out.dtype).toBe(dtype);
      expectNear(out, expected, 2 * roundingError[dtype]);
      const dout = normal([batch, time, heads, width], 9, { dtype }).transpose(1, 2);
      const wanted = gradientsOf([expected], wide, [dout.to("float64")]);
      // Before torch 2 the smallest bfloat16 products are also summed in bfloat16.
      gradientsOf([out], given, [dout]).forEach((gradient, i) => {
        expectNear(gradient, wanted[i] as Tensor, 6 * roundingError[dtype]);
      });
    },
  );

  it("lets no position see a later one, NaN included", () => {
    const [q, k, v] = inputs(1, 2, 200, 8, "float32").map((t) => t.detach().contiguous()) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const before = ops.troupe.attention(q, k, v, true, 0.3);
    k.narrow(2, 150, 50).fill_(Number.NaN);
    const after = ops.troupe.attention(q, k, v, true, 0.3);
    expectSame(after.narrow(2, 0, 128).contiguous(), before.narrow(2, 0, 128).contiguous());
  });

  // Complete blocks of rows; ragged ones, odd ones; wide heads; more rows than one sum has; results that go past the cache.
  it.each([
    [2, 3, 256, 64, true],
    [1, 2, 701, 32, true],
    [1, 2, 700, 32, false],
    [4, 4, 512, 64, true],
    [1, 2, 201, 96, true],
    [1, 2, 67, 32, false],
    [2, 1, 130, 128, true],
  ] as const)(
    "agrees with float64 over tiles on [%i,%i,%i,%i], causal %s",
    (batch, heads, time, width, causal) => {
      const run = (threads: number) => {
        setNumThreads(threads);
        const given = inputs(batch, heads, time, width, "bfloat16");
        const out = ops.troupe.attention(...given, causal, width ** -0.5);
        const dout = normal([batch, time, heads, width], 9, { dtype: "bfloat16" }).transpose(1, 2);
        return { given, dout, results: [out, ...gradientsOf([out], given, [dout])] };
      };
      const before = setTileProducts(true);
      const { given, dout, results } = run(1);
      const others = run(2).results;
      setTileProducts(before);
      setNumThreads(1);
      const wide = given.map(exact) as [Tensor, Tensor, Tensor];
      const expected = reference(...wide, causal, width ** -0.5);
      const wanted = [expected, ...gradientsOf([expected], wide, [dout.to("float64")])];
      results.forEach((result, i) => {
        expectSame(others[i] as Tensor, result);
        expectNear(result, wanted[i] as Tensor, (i === 0 ? 2 : 6) * roundingError.bfloat16);
      });
      if (hasTileProducts())
        expect(numbers(results[1] as Tensor)).not.toEqual(numbers(run(1).results[1] as Tensor));
    },
  );

  it("stays finite for scores that overflow exp", () => {
    const q = normal([1, 1, 4, 8], 1, { std: 100 });
    expect(
      ops
        .isfinite(ops.troupe.attention(q, q, q, true, 1))
        .all()
        .item(),
    ).toBeTruthy();
  });

  it("attends across when there are more keys than queries", () => {
    const q = normal([1, 2, 3, 8], 1);
    const k = normal([1, 2, 7, 8], 2);
    const v = normal([1, 2, 7, 8], 3);
    expectNear(
      ops.troupe.attention(q, k, v, false, 0.35),
      reference(q.to("float64"), k.to("float64"), v.to("float64"), false, 0.35),
      4e-6,
    );
  });

  it("gives the same bits for every number of threads", () => {
    const [one, two] = [1, 2].map((numThreads) => {
      setNumThreads(numThreads);
      const given = inputs(2, 4, 160, 16, "float32");
      const out = ops.troupe.attention(...given, true, 0.25);
      return [out, ...gradientsOf([out], given, [ones(out.shape)])];
    }) as [Tensor[], Tensor[]];
    setNumThreads(1);
    one.forEach((result, i) => {
      expectSame(two[i] as Tensor, result);
    });
  });

  it("refuses causal attention of unequal lengths, and mixed shapes and dtypes", () => {
    const q = zeros([1, 2, 3, 8]);
    const k = zeros([1, 2, 7, 8]);
    expect(refusal(() => ops.troupe.attention(q, k, k, true, 1))?.message).toContain(
      "as many queries as keys, got 3 and 7",
    );
    expect(refusal(() => ops.troupe.attention(q, k, q, false, 1))?.message).toContain("q, k and v to be");
    expect(refusal(() => ops.troupe.attention(q, q, q.to("bfloat16"), true, 1))?.message).toContain(
      "all to be float32",
    );
  });
});
