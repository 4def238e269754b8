import { philox4x32, wordsOf } from "./philox.ts";

const numRounds = 8;

/**
 * Position of the item at `index` after a seeded shuffle of `size` items, without a list: a Feistel network over the
 * smallest even number of bits that holds `size`, repeated until the result is below `size`.
 * @param index - 0 ≤ index < size
 * @param shuffle - number of the seed's shuffle, for instance the epoch
 * @returns the new position; over all indices each position occurs exactly once
 * @see Black and Rogaway 2002, "Ciphers with arbitrary finite domains" (cycle walking)
 */
export function permute(index: number, size: number, seed: number, shuffle: number): number {
  let place = index;
  do place = feistel(place, halfBits(size), seed, shuffle);
  while (place >= size);
  return place;
}

function feistel(value: number, bits: number, seed: number, shuffle: number): number {
  const half = 2 ** bits;
  const key = wordsOf(seed);
  const [shuffleLow, shuffleHigh] = wordsOf(shuffle);
  let left = Math.floor(value / half);
  let right = value % half;
  for (let round = 0; round < numRounds; round++) {
    const [random] = philox4x32([right, round, shuffleLow, shuffleHigh], key);
    [left, right] = [right, (left ^ (random & (half - 1))) >>> 0];
  }
  return left * half + right;
}

/** Half of the even number of bits whose range first reaches `size`. */
function halfBits(size: number): number {
  let bits = 1;
  while (4 ** bits < size) bits++;
  return bits;
}
