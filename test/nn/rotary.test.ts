import { describe, expect, test } from "vitest";
import { rotaryAngles, rotaryFrequencies, rotate } from "../../src/compute/nn/index.ts";
import { empty, ops, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";

const values = (x: Tensor) => Array.from(x.to("float64").toTypedArray() as Float64Array);

describe("rotary positions", () => {
  test("turn each pair by its position times theta^(−2i/width), a pair being half the width apart", () => {
    scope(() => {
      const [width, theta, length] = [6, 50, 4];
      const x = ops.troupe.philoxNormal_(empty([1, 1, length, 8]), 0, 1, 3, 0, 0);
      const given = values(x);
      const expected = given.slice();
      for (let t = 0; t < length; t++) {
        for (let i = 0; i < width / 2; i++) {
          const angle = t * theta ** ((-2 * i) / width);
          const [first, second] = [given[t * 8 + i] ?? 0, given[t * 8 + i + width / 2] ?? 0];
          expected[t * 8 + i] = first * Math.cos(angle) - second * Math.sin(angle);
          expected[t * 8 + i + width / 2] = second * Math.cos(angle) + first * Math.sin(angle);
        }
      }
      const turned = rotate(x, rotaryAngles(rotaryFrequencies(width, theta), length));
      values(turned).forEach(
        (value, index) => void expect(value).toBeCloseTo(expected[index] ?? Number.NaN, 5),
      );
    });
  });

  test("leave products of queries and keys to their distance alone", () => {
    scope(() => {
      const angles = rotaryAngles(rotaryFrequencies(8, 10000), 12);
      const one = (stream: number) =>
        ops.troupe.philoxNormal_(empty([1, 1, 1, 8]), 0, 1, 3, stream, 0).expand([1, 1, 12, 8]);
      const products = rotate(one(1), angles).matmul(rotate(one(2), angles).transpose(2, 3));
      for (const [t, s] of [
        [3, 0],
        [7, 4],
        [11, 8],
      ] as const)
        expect(products.narrow(2, t, 1).narrow(3, s, 1).item()).toBeCloseTo(
          products.narrow(2, 5, 1).narrow(3, 2, 1).item(),
          4,
        );
    });
  });

  test("are divided by a linear scaling", () => {
    const plain = rotaryFrequencies(8, 10000);
    const scaled = rotaryFrequencies(8, 10000, { kind: "linear", factor: 4 });
    plain.forEach((frequency, i) => void expect(scaled[i]).toBeCloseTo(frequency / 4, 9));
  });

  test("are kept, blended and divided by Llama 3.1's scaling, by their turns over the original context", () => {
    const scaling = { kind: "llama3", factor: 8, lowTurns: 1, highTurns: 4, numPositions: 8192 } as const;
    const plain = rotaryFrequencies(128, 500000);
    const scaled = rotaryFrequencies(128, 500000, scaling);
    const kinds = plain.map((frequency, i) => {
      const turns = (8192 * frequency) / (2 * Math.PI);
      const kept = Math.min(1, Math.max(0, (turns - 1) / 3));
      const expected = kept * frequency + ((1 - kept) * frequency) / 8;
      expect((scaled[i] ?? 0) / expected).toBeCloseTo(1, 5);
      return turns > 4 ? "kept" : turns < 1 ? "divided" : "blended";
    });
    expect(new Set(kinds)).toEqual(new Set(["kept", "blended", "divided"]));
  });

  test("refuse odd widths and what is not positive", () => {
    expect(refusal(() => rotaryFrequencies(7, 10000))?.message).toContain("an even width");
    expect(refusal(() => rotaryFrequencies(8, 0))?.message).toContain("a positive theta");
    expect(refusal(() => rotaryFrequencies(8, 1, { kind: "linear", factor: -1 }))?.message).toContain(
      "factor",
    );
  });
});
