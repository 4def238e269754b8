import { describe, expect, it } from "vitest";
import {
  arange,
  type DType,
  empty,
  full,
  itemBytes,
  ones,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "./numbers.ts";

describe("creation", () => {
  it("takes nested numbers, their nesting being the shape", () => {
    const t = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(t.shape).toEqual([2, 3]);
    expect(t.dtype).toBe("float32");
    expect(t.ndim).toBe(2);
    expect(t.numel).toBe(6);
    expect(t.device).toBe("cpu");
    expect(numbers(t)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("takes a number as a 0-dim tensor", () => {
    const t = tensor(2.5, { dtype: "float64" });
    expect(t.shape).toEqual([]);
    expect(t.numel).toBe(1);
    expect(t.item()).toBe(2.5);
  });

  it("takes empty data", () => {
    expect(tensor([]).shape).toEqual([0]);
    expect(tensor(new Float32Array(0), { shape: [0, 3] }).shape).toEqual([0, 3]);
    expect(numbers(zeros([2, 0]))).toEqual([]);
  });

  it("refuses rows of different length", () => {
    expect(refusal(() => tensor([[1, 2], [3]]))).toMatchObject({ code: "TENSOR_ARGUMENT" });
  });

  it("refuses a shape that does not fit the number of elements", () => {
    const error = refusal(() => tensor(new Float32Array(5), { shape: [2, 3] }));
    expect(error).toEqual({
      code: "TENSOR_ARGUMENT",
      message: "[tensor] expected 6 elements for shape [2,3], got 5",
    });
  });

  it("refuses an unknown dtype by name, listing those that exist", () => {
    const error = refusal(() => zeros([1], { dtype: "complex64" as DType }));
    expect(error?.code).toBe("TENSOR_DTYPE");
    expect(error?.message).toContain("complex64");
    expect(error?.message).toContain("bfloat16");
  });

  it("fills zeros, ones, full and arange", () => {
    expect(numbers(zeros([2, 2]))).toEqual([0, 0, 0, 0]);
    expect(numbers(ones(3, { dtype: "bool" }))).toEqual([1, 1, 1]);
    expect(numbers(full([2], -1.5, { dtype: "float64" }))).toEqual([-1.5, -1.5]);
    expect(numbers(arange(4))).toEqual([0, 1, 2, 3]);
    expect(arange(4).dtype).toBe("int64");
    expect(numbers(arange(2, { start: 0, step: 0.5, dtype: "float32" }))).toEqual([0, 0.5, 1, 1.5]);
    expect(empty([3, 4], { dtype: "bfloat16" }).shape).toEqual([3, 4]);
  });
});

describe("elements in and out", () => {
  const samples = {
    float32: new Float32Array([1.5, -0, Number.NaN, Number.POSITIVE_INFINITY]),
    float64: new Float64Array([Math.PI, -1e300, Number.EPSILON, 0]),
    int64: new BigInt64Array([2n ** 62n, -1n, 0n, 7n]),
    int32: new Int32Array([2 ** 31 - 1, -(2 ** 31), 0, 5]),
    int16: new Int16Array([32767, -32768, 0, 1]),
    int8: new Int8Array([127, -128, 0, 1]),
    uint8: new Uint8Array([255, 0, 1, 2]),
    bfloat16: new Uint16Array([0x3f80, 0xc000, 0x7f80, 0x0001]),
    float16: new Uint16Array([0x3c00, 0xc000, 0x7c00, 0x0001]),
    bool: new Uint8Array([1, 0, 1, 1]),
  } as const;

  it.each(Object.entries(samples))("gives back the very bits of %s", (dtype, data) => {
    const t = tensor(data, { dtype: dtype as DType });
    expect(t.dtype).toBe(dtype);
    const out = t.toTypedArray();
    expect(out.constructor).toBe(data.constructor);
    expect(Buffer.from(out.buffer, out.byteOffset, out.byteLength)).toEqual(
      Buffer.from(data.buffer, data.byteOffset, data.byteLength),
    );
    expect(out.byteLength).toBe(data.length * itemBytes(dtype as DType));
  });

  it("copies: later changes of the array do not show", () => {
    const data = new Float32Array([1, 2]);
    const t = tensor(data);
    data[0] = 9;
    expect(numbers(t)).toEqual([1, 2]);
  });

  it("takes a view into a larger buffer at its offset", () => {
    const data = new Float32Array([0, 1, 2, 3, 4]).subarray(1, 4);
    expect(numbers(tensor(data))).toEqual([1, 2, 3]);
  });

  it("takes arrays over shared memory", () => {
    const shared = new Int32Array(new SharedArrayBuffer(16));
    shared.set([3, 1, 4, 1]);
    expect(numbers(tensor(shared))).toEqual([3, 1, 4, 1]);
    expect(numbers(zeros([4], { dtype: "float32" }).copyFrom(shared))).toEqual([3, 1, 4, 1]);
  });

  it("converts to the dtype asked for", () => {
    expect(numbers(tensor(new Float32Array([0, 0.5, 2]), { dtype: "bool" }))).toEqual([0, 1, 1]);
    expect(numbers(tensor([1.7, -1.7], { dtype: "int64" }))).toEqual([1, -1]);
    expect(numbers(tensor([1, 1 + 2 ** -9], { dtype: "bfloat16" }))).toEqual([1, 1]);
  });

  it("refuses raw 16-bit words without a 16-bit dtype", () => {
    expect(refusal(() => tensor(new Uint16Array(2)))).toMatchObject({ code: "TENSOR_ARGUMENT" });
  });

  it("reads a transposed tensor in row-major order of its own shape", () => {
    const t = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]).t();
    expect(numbers(t)).toEqual([1, 4, 2, 5, 3, 6]);
  });

  it("overwrites through a strided view with copyFrom", () => {
    const t = zeros([2, 3]);
    t.select(1, 1).copyFrom(new Float32Array([7, 8]));
    expect(numbers(t)).toEqual([0, 7, 0, 0, 8, 0]);
  });

  it("refuses to copy from an array of another length", () => {
    const error = refusal(() => zeros([2, 2]).copyFrom(new Float32Array(3)));
    expect(error).toEqual({
      code: "TENSOR_ARGUMENT",
      message: "[copyFrom] expected an array of 4 elements for float32[2,2] (ndim 2), got one of 3",
    });
  });

  it("refuses item() of more than one element", () => {
    expect(refusal(() => zeros([2]).item())).toMatchObject({ code: "TENSOR_ARGUMENT" });
  });

  it("casts between all dtypes", () => {
    for (const from of Object.keys(samples) as DType[]) {
      for (const to of Object.keys(samples) as DType[]) {
        const cast = tensor([0, 1, 3], { dtype: from }).to(to);
        expect(cast.dtype).toBe(to);
        expect(numbers(cast)).toEqual(from === "bool" || to === "bool" ? [0, 1, 1] : [0, 1, 3]);
      }
    }
  });
});
