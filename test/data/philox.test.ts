import { expect, test } from "vitest";
import { philox4x32, type Words4, wordsOf } from "../../src/library/data/philox.ts";

// Known answers of the Random123 distribution, file kat_vectors.
const knownAnswers: [Words4, [number, number], Words4][] = [
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
];

test.each(knownAnswers)("gives the published words for counter %j", (counter, key, expected) => {
  expect(philox4x32(counter, key)).toEqual(expected);
});

test("splits safe integers into words without loss", () => {
  expect(wordsOf(0x1_2345_6789)).toEqual([0x2345_6789, 1]);
  expect(wordsOf(Number.MAX_SAFE_INTEGER)).toEqual([0xffffffff, 0x1fffff]);
  expect(wordsOf(-1)).toEqual([0xffffffff, 0xffffffff]);
});
