import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { native } from "../../src/compute/tensor/index.ts";
import { crc32c } from "../../src/library/checkpoint/storage/summed-file.ts";

/** RFC 3720, B.4, and the check value of the CRC catalogue. */
const golden: readonly [string, Uint8Array, number][] = [
  ["nothing", new Uint8Array(0), 0],
  ["123456789", Buffer.from("123456789"), 0xe3069283],
  ["32 zeros", new Uint8Array(32), 0x8a9136aa],
  ["32 ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ["0 to 31", Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
  ["31 to 0", Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
];

describe("CRC-32C", () => {
  test.each(golden)("of %s is what the standard says, by instruction and by table", (_, bytes, sum) => {
    expect([crc32c(bytes), native().crc32c(bytes, 0, true)]).toEqual([sum, sum]);
  });

  test("is the same by instruction and by table, from any address, in one piece or two", () => {
    const all = Uint8Array.from({ length: 20_000 }, (_, i) => (i * 2_654_435_761) >>> 13);
    const place = fc.integer({ min: 0, max: all.length });
    fc.assert(
      fc.property(place, place, place, (a, b, c) => {
        const [begin = 0, middle = 0, end = 0] = [a, b, c].sort((x, y) => x - y);
        const [first, second] = [all.subarray(begin, middle), all.subarray(middle, end)];
        const sum = crc32c(all.subarray(begin, end));
        expect(native().crc32c(all.subarray(begin, end), 0, true)).toBe(sum);
        expect(crc32c(second, crc32c(first))).toBe(sum);
      }),
      { seed: 4, numRuns: 300 },
    );
  });
});
