import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { arange, liveTensors, ops, scope, tensor } from "../../src/compute/tensor/index.ts";

let before = 0;
beforeEach(() => {
  before = liveTensors();
});
afterEach(() => expect(liveTensors()).toBe(before));

const shown = (make: Parameters<typeof scope>[0]) => scope(() => inspect(make()));

describe("console.log of a tensor", () => {
  it("has dtype, shape, device, mean, deviation and the values in rows, as torch writes them", () => {
    expect(
      shown(() =>
        tensor([
          [1.5, -2],
          [0.25, 10],
        ]),
      ),
    ).toBe("Tensor float32[2,2] cpu mean 2.438 std 5.246\n[[ 1.5000, -2.0000],\n [ 0.2500, 10.0000]]");
    expect(shown(() => tensor([1, 2, Number.NaN]))).toMatch(
      /^Tensor float32\[3\] cpu mean nan std nan\n\[ {1}1\., {2}2\., nan\]$/,
    );
    expect(shown(() => tensor([1e-9, 1]))).toContain("[1.0000e-9, 1.0000e+0]");
    expect(shown(() => tensor([[[1, 2]], [[3, 4]]], { dtype: "int64" }))).toBe(
      "Tensor int64[2,1,2] cpu mean 2.5 std 1.291\n[[[1, 2]],\n\n [[3, 4]]]",
    );
    expect(shown(() => tensor(3))).toBe("Tensor float32[] cpu\n3.");
    expect(shown(() => tensor([1, 0.5]).to("bfloat16"))).toContain("[1.0000, 0.5000]");
  });

  it("has the edges of a large one, and does not read a very large one for its mean", () => {
    expect(shown(() => arange(2000, { dtype: "float32" }))).toBe(
      "Tensor float32[2000] cpu mean 999.5 std 577.5\n[   0.,    1.,    2., …, 1997., 1998., 1999.]",
    );
    expect(shown(() => ops.zeros([1 << 21]))).toMatch(/^Tensor float32\[2097152\] cpu\n\[0\., 0\., 0\., …/);
  });

  it("never throws: one without memory, and one that is gone, show what they are", () => {
    expect(shown(() => ops.troupe.placeholder([2, 3], "float32"))).toBe("Tensor float32[2,3]");
    const gone = scope(() => {
      const made = tensor([1]);
      made.dispose();
      return made;
    });
    expect(inspect(gone)).toBe("Tensor (disposed)");
    expect(inspect({ gone })).toBe("{ gone: Tensor (disposed) }");
  });
});
