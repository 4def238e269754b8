import { describe, expect, it } from "vitest";
import {
  full,
  ones,
  ops,
  setNumThreads,
  type Tensor,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectNear, expectSame, floatTypes, normal } from "./inputs.ts";

describe("chunk_square_sums", () => {
  it.each([0, 1, 31, 1023, 1024, 1025, 5000])(
    "sums the squares of each 1,024 of %i elements in float64",
    (numel) => {
      for (const dtype of floatTypes) {
        const flat = normal([numel], 1, { dtype });
        const sums = ops.troupe.chunkSquareSums(flat);
        expect(sums.shape).toEqual([Math.ceil(numel / 1024)]);
        const padded = ops.cat([
          flat.to("float64"),
          zeros([sums.numel * 1024 - numel], { dtype: "float64" }),
        ]);
        expectNear(sums, padded.view([-1, 1024]).square().sum([1]), 1e-14);
      }
    },
  );

  it("sums of a chunk have the same bits on every rank, for every number of threads", () => {
    const flat = normal([300_000], 1);
    setNumThreads(2);
    const whole = ops.troupe.chunkSquareSums(flat);
    setNumThreads(1);
    const part = ops.troupe.chunkSquareSums(flat.narrow(0, 50 * 1024, 100 * 1024));
    expectSame(part, whole.narrow(0, 50, 100));
  });
});

describe("reduce_ranks_", () => {
  it.each(floatTypes)(
    "adds slices of %s in list order in float32, and sums the squares of its chunks when asked to",
    (dtype) => {
      const sources = [1, 2, 3].map((stream) => normal([10_000], stream, { dtype, std: 10 ** stream }));
      const parts = sources.map((source) => source.narrow(0, 777, 5001).to("float32")) as [
        Tensor,
        Tensor,
        Tensor,
      ];
      const expected = parts[0].add(parts[1]).add(parts[2]);
      const out = full([5001], Number.NaN);
      setNumThreads(2);
      ops.troupe.reduceRanks_(out, sources, 777);
      expectSame(out, expected);
      const squares = full([5], Number.NaN, { dtype: "float64" });
      ops.troupe.reduceRanks_(out.fill_(Number.NaN), sources, 777, squares);
      setNumThreads(1);
      expectSame(out, expected);
      expectSame(squares, ops.troupe.chunkSquareSums(expected));
    },
  );

  it("refuses a slice that a source does not reach, and no sources", () => {
    expect(refusal(() => ops.troupe.reduceRanks_(zeros(4), [zeros(9)], 6))?.message).toContain(
      "reach element 10",
    );
    expect(refusal(() => ops.troupe.reduceRanks_(zeros(4), [], 0))?.message).toContain("at least one source");
    expect(
      refusal(() => ops.troupe.reduceRanks_(zeros(4), [zeros(9)], 0, zeros(2).to("float64")))?.message,
    ).toContain("float64 of 1 elements, got Double of [2]");
  });
});

describe("collect_gradients_", () => {
  const gradients = [normal([7, 5], 1).transpose(0, 1), undefined, normal([10], 2, { dtype: "bfloat16" })];
  const offsets = [0, 40, 60];
  const expected = zeros([100]);
  expected.narrow(0, 0, 35).copy_((gradients[0] as Tensor).reshape([-1]));
  expected.narrow(0, 60, 10).copy_(gradients[2] as Tensor);

  it("copies each to its place whatever its strides and dtype, and zeroes all else", () => {
    const flat = full([100], 9);
    ops.troupe.collectGradients_(flat, gradients, offsets, false);
    expectSame(flat, expected);
  });

  it("adds to present gradients on request, and ignores missing ones", () => {
    const flat = full([100], 9);
    ops.troupe.collectGradients_(flat, gradients, offsets, true);
    expectSame(flat, expected.add(9));
  });

  it.each(["float32", "bfloat16", "float16", "float64"] as const)(
    "rounds to a flat buffer of %s as libtorch does",
    (dtype) => {
      const special = [
        Infinity,
        -Infinity,
        Number.NaN,
        0,
        65504,
        65519,
        65520,
        1e-8,
        6e-8,
        2.98e-8,
        2.99e-8,
        6.1e-5,
        3.4e38,
      ];
      const gradient = ops.cat([
        tensor(special),
        ...[0, 5, 14, 15, 17, 20, 24, 30].map((e) => normal([999], e, { std: 2 ** -e })),
      ]);
      const flat = zeros([gradient.numel], { dtype });
      ops.troupe.collectGradients_(flat, [gradient], [0], false);
      expectSame(flat, gradient.to(dtype));
    },
  );

  it.each(["bfloat16", "float16"] as const)("reads every value that %s has", (dtype) => {
    const all = tensor(
      Uint16Array.from({ length: 65536 }, (_, bits) => bits),
      { dtype },
    );
    const flat = zeros([65536]);
    ops.troupe.collectGradients_(flat, [all], [0], false);
    expectSame(flat, all.to("float32").add(0));
  });

  it("refuses gradients that overlap or reach beyond the end, before any is written", () => {
    const flat = ones([10]);
    const call = (given: number[]) => () =>
      ops.troupe.collectGradients_(flat, [ones([4]), ones([4])], given, false);
    expect(refusal(call([0, 3]))?.message).toContain("gradients to follow each other");
    expect(refusal(call([0, 7]))?.message).toContain("gradients to follow each other");
    expectSame(flat, ones([10]));
  });
});

describe("all_finite", () => {
  it.each([...floatTypes, "float64"] as const)(
    "finds one infinity or NaN among many elements of %s",
    (dtype) => {
      expect(ops.troupe.allFinite([normal([40_000], 1, { dtype }), zeros([0], { dtype })])).toBeTruthy();
      for (const value of [Infinity, -Infinity, Number.NaN]) {
        for (const position of [0, 20_000, 39_999]) {
          const bad = normal([40_000], 1, { dtype });
          bad.narrow(0, position, 1).fill_(value);
          expect(ops.troupe.allFinite([ones([3]), bad])).toBeFalsy();
        }
      }
    },
  );

  it("says yes to no tensors", () => {
    expect(ops.troupe.allFinite([])).toBeTruthy();
  });
});

describe("token_windows", () => {
  it.each(["uint8", "int16", "int32"] as const)(
    "cuts inputs and targets one further out of %s tokens",
    (dtype) => {
      const [inputIds, targets] = ops.troupe.tokenWindows(
        tensor([...Array(200).keys()], { dtype }),
        [0, 5, 197],
        2,
      );
      expect(inputIds.dtype).toBe("int64");
      expect(numbers(inputIds)).toEqual([0, 1, 5, 6, 197, 198]);
      expect(numbers(targets)).toEqual([1, 2, 6, 7, 198, 199]);
    },
  );

  it("reads 16-bit tokens as unsigned", () => {
    const tokens = tensor(Int16Array.from([-1, -2, 3]));
    expect(numbers(ops.troupe.tokenWindows(tokens, [0], 2)[0])).toEqual([65535, 65534]);
  });

  it.each([[8], [-1]])("refuses a window at %i that leaves the tokens", (start) => {
    const call = () => ops.troupe.tokenWindows(zeros([10], { dtype: "uint8" }), [0, start], 2);
    expect(refusal(call)?.message).toContain(`to lie within 10 tokens, got start ${start}`);
  });
});
