/** Four 32-bit words, unsigned. */
export type Words4 = readonly [number, number, number, number];

/**
 * Philox4x32-10: 128 random bits that are a pure function of a 128-bit counter and a 64-bit key.
 * @see Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"
 */
export function philox4x32(counter: Words4, key: readonly [number, number]): Words4 {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(0xd2511f53, c0);
    const low0 = Math.imul(0xd2511f53, c0) >>> 0;
    const high1 = multiplyHigh(0xcd9e8d57, c2);
    const low1 = Math.imul(0xcd9e8d57, c2) >>> 0;
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0];
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/** The two 32-bit words of a safe integer, low word first; negative ones in two's complement. */
export function wordsOf(value: number): [number, number] {
  return [value >>> 0, Math.floor(value / 2 ** 32) >>> 0];
}

/** High 32 bits of the product of two unsigned 32-bit words, by halves: the product itself exceeds a double. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = aLow * bHigh + (middle & 0xffff);
  return (aHigh * bHigh + (middle >>> 16) + (carry >>> 16)) >>> 0;
}
