import { describe, expect, test } from "vitest";
import { explicitAttention } from "../../src/nn/attention.ts";
import { bindRandomness, causalAttention, Dropout, Randomness } from "../../src/nn/index.ts";
import { empty, ops, scope, type Tensor } from "../../src/tensor/index.ts";

function heads(): [q: Tensor, k: Tensor, v: Tensor] {
  const draw = (stream: number) => ops.troupe.philoxNormal_(empty([2, 3, 17, 8]), 0, 1, 1, stream, 0);
  return [draw(0), draw(1), draw(2)];
}

const values = (x: Tensor) => Array.from(x.toTypedArray() as Float32Array);

describe("causal attention", () => {
  test("equals its definition", () => {
    scope(() => {
      const [q, k, v] = heads();
      const byKernel = values(causalAttention(q, k, v, { scale: 0.3 }));
      const byDefinition = values(explicitAttention(q, k, v, 0.3));
      byKernel.forEach(
        (value, index) => void expect(value).toBeCloseTo(byDefinition[index] ?? Number.NaN, 5),
      );
    });
  });

  test("lets no position see a later one", () => {
    scope(() => {
      const [q, k, v] = heads();
      const before = values(causalAttention(q, k, v).narrow(2, 0, 16));
      v.narrow(2, 16, 1).fill_(100);
      k.narrow(2, 16, 1).fill_(100);
      expect(values(causalAttention(q, k, v).narrow(2, 0, 16))).toEqual(before);
    });
  });

  test("drops attention weights while training, the same in each pass of one step", () => {
    scope(() => {
      const [q, k, v] = heads();
      const dropout = new Dropout(0.5);
      const randomness = new Randomness(2);
      bindRandomness(dropout, randomness);
      const dropped = values(causalAttention(q, k, v, { dropout }));
      randomness.restart();
      expect(values(causalAttention(q, k, v, { dropout }))).toEqual(dropped);
      expect(dropped).not.toEqual(values(causalAttention(q, k, v)));
      expect(values(causalAttention(q, k, v, { dropout: dropout.eval() }))).toEqual(
        values(causalAttention(q, k, v)),
      );
    });
  });
});
