import type { WeightBytes } from "../../src/library/models/index.ts";

/**
 * The same float32 weights but for the last bit of each, which lots decide: as far from those given as sums in another order
 * leave them after a step. How far two such starts end apart is what rounding alone makes of a recipe.
 * @param start - which lots; 0 leaves every weight as it is
 */
export function nudged(weights: readonly WeightBytes[], start: number): WeightBytes[] {
  if (start === 0) return [...weights];
  return weights.map((weight, index) => ({
    ...weight,
    read: () => {
      const bytes = weight.read().slice();
      const bits = new Uint32Array(bytes.buffer);
      const lots = lotsOf(Math.imul(start, 0x9e3779b9) + index);
      for (let place = 0; place < bits.length; place++) {
        const [value, isOther] = [bits[place] as number, lots()];
        // A zero has no last bit: a changed one would be no rounding of any value.
        if (isOther && value << 1 !== 0) bits[place] = value ^ 1;
      }
      return bytes;
    },
  }));
}

/** Heads or tails: the highest bit of a linear congruence's state (Knuth 1997, volume 2, 3.3.4). */
function lotsOf(seed: number): () => boolean {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 31 === 1;
  };
}
