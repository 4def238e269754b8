import { philox4x32, wordsOf } from "./philox.ts";

const numRounds = 8;

/**
 * Where a seeded shuffle of `size` things puts the one at `index`, with no list of them: a Feistel network over the
 * smallest even number of bits that holds `size`, walked until it lands inside.
 * @param index - 0 ≤ index < size
 * @param shuffle - which of the seed's shuffles, for instance the epoch
 * @returns the new place; over all indices each place comes exactly once
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
