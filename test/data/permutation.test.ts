import fc from "fast-check";
import { expect, test } from "vitest";
import { permute } from "../../src/library/data/permutation.ts";

function shuffled(size: number, seed: number, shuffle: number): number[] {
  return Array.from({ length: size }, (_, index) => permute(index, size, seed, shuffle));
}

test("puts each of any number of things in a place of its own", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 700 }), fc.maxSafeInteger(), fc.nat(), (size, seed, shuffle) => {
      const places = shuffled(size, seed, shuffle).toSorted((a, b) => a - b);
      expect(places).toEqual(Array.from({ length: size }, (_, index) => index));
    }),
  );
});

test("a permutation differs for every seed and epoch, and is the same for the same ones", () => {
  expect(shuffled(100, 7, 3)).toEqual(shuffled(100, 7, 3));
  expect(shuffled(100, 7, 3)).not.toEqual(shuffled(100, 7, 4));
  expect(shuffled(100, 7, 3)).not.toEqual(shuffled(100, 8, 3));
});

test("sends a thing to every place about equally often over many epochs", () => {
  // 24 orders of 4 things over 4,800 epochs: 200 expected for each; five standard deviations are about 70.
  const counts = new Map<string, number>();
  for (let epoch = 0; epoch < 4800; epoch++) {
    const order = shuffled(4, 1337, epoch).join();
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  expect(counts.size).toBe(24);
  for (const count of counts.values()) expect(Math.abs(count - 200)).toBeLessThan(70);
});

test("stays inside a range beyond 32 bits", () => {
  const size = 2 ** 45 + 12_345;
  for (const index of [0, 1, size - 1]) {
    const place = permute(index, size, 1, 0);
    expect(Number.isSafeInteger(place) && place >= 0 && place < size).toBe(true);
  }
});
