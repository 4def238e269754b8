import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  bertSample,
  blendSizes,
  documentPlaces,
  gptSamples,
  gptTokens,
  loadWordPiece,
  type MaskVocabulary,
  rampedBatchSize,
  sentenceSamples,
  splitRanges,
  t5Sample,
  t5Vocabulary,
} from "../../../src/library/data/index.ts";
import { blend } from "../../../src/library/data/megatron/blend.ts";

// The numbers are those that Megatron-LM's own functions give.
describe("splits", () => {
  it.each([
    ["980,20", 1000, [0, 980, 1000, 1000], undefined],
    ["969, 30, 1", 1000, [0, 969, 999, 1000], undefined],
    ["969, 30, 1", 77, [0, 75, 77, 77], undefined],
    ["90,5,5", 33, [0, 29, 31, 33], [0, 30, 31, 33]],
    ["8/1/1", 10, [0, 8, 9, 10], undefined],
  ])("%s of %i", (split, size, old, core) => {
    const bounds = (rule: "2022" | "core") => {
      const ranges = splitRanges(split, size, rule);
      expect(ranges.map(([begin]) => begin).slice(1)).toEqual(ranges.map(([, end]) => end).slice(0, 2));
      return [ranges[0][0], ...ranges.map(([, end]) => end)];
    };
    expect(bounds("2022")).toEqual(old);
    expect(bounds("core")).toEqual(core ?? old);
  });

  it.each(["", "a,b", "0,0", "-1,2"])("%j is none", (split) => {
    expect(() => splitRanges(split, 10)).toThrow(expect.objectContaining({ code: "DATA_OPTION" }));
  });
});

describe("GPT samples", () => {
  const lengths = Int32Array.of(5, 3, 7, 2, 9, 4);
  const documents = [0, 1, 2, 3, 4, 5];
  const bounds = (text: string) =>
    text
      .split(/[^0-9]+/)
      .filter(Boolean)
      .map(Number);
  const list = (text: string) => text.split(" ").map(Number);

  it.each([
    [7, 1, false, "2 1 5 0 4 3", "(0,0)(0,4)(1,1)(2,2)(3,2)(4,1)(4,5)(5,0)", "5 0 3 4 2 6 1"],
    [
      9,
      2,
      true,
      "2 1 5 0 4 3 0 4 3 2 5 1",
      "(0,0)(0,4)(1,1)(2,2)(3,2)(4,1)(4,5)(5,0)(6,2)(7,1)(7,5)(8,0)(9,2)(9,6)(10,3)",
      "1 0 3 2 5 4 6 9 10 12 8 11 13 7",
    ],
    [
      14,
      2,
      false,
      "1 2 5 2 3 4 1 0 4 5 0 3",
      "(0,0)(1,1)(1,5)(2,2)(3,2)(3,6)(5,1)(5,5)(6,0)(7,1)(8,0)(8,4)(8,8)(9,3)(10,3)",
      "7 11 2 3 1 9 5 4 0 8 6 10 13 12",
    ],
  ])("%i of them, over %i epochs", (numSamples, numEpochs, separates, laid, cuts, order) => {
    const samples = gptSamples({ lengths, documents, numSamples, length: 4, seed: 1234 });
    expect([samples.numEpochs, samples.separatesLastEpoch]).toEqual([numEpochs, separates]);
    expect([...samples.documents]).toEqual(list(laid));
    expect([...samples.bounds]).toEqual(bounds(cuts));
    expect([...samples.order]).toEqual(list(order));
  });

  it("are tokens that follow each other, over the ends of documents, and share one with their neighbour", () => {
    const samples = gptSamples({ lengths, documents, numSamples: 14, length: 4, seed: 1234 });
    const text = [...samples.documents].flatMap((d) =>
      Array.from({ length: lengths[d] as number }, (_, t) => 100 * d + t),
    );
    const get = (d: number, offset = 0, count = (lengths[d] as number) - offset) =>
      Int32Array.from({ length: count }, (_, t) => 100 * d + offset + t);
    samples.order.forEach((sample, index) => {
      expect([...gptTokens(samples, get, index)]).toEqual(text.slice(4 * sample, 4 * sample + 5));
    });
  });
});

describe("blends", () => {
  it("blended samples come from the dataset that lags furthest behind its share", () => {
    const { datasets, samples } = blend([1, 3], 8);
    expect([...datasets]).toEqual([1, 0, 1, 1, 0, 1, 1, 1]);
    expect([...samples]).toEqual([0, 0, 1, 2, 1, 3, 4, 5]);
    expect(blendSizes([1, 3], 100)).toEqual([26, 76]);
  });

  it("blends of more than 256 datasets take every one, and more than 65,536 are refused", () => {
    const { datasets } = blend(Array(300).fill(1), 300);
    expect([...datasets]).toEqual(Array.from({ length: 300 }, (_, d) => d));
    expect(() => blend(Array(65_537).fill(1), 1)).toThrow(
      "[blend] expected at most 65536 datasets, got 65537",
    );
  });
});

describe("documents of one row", () => {
  it("documents of a row are separated if options ask for it", () => {
    const plain = documentPlaces([5, 9, 6, 7], { endOfDocument: 9 });
    expect([plain.begins, [...plain.lossMask], [...plain.positions]]).toEqual([
      [0],
      [1, 1, 1, 1],
      [0, 1, 2, 3],
    ]);
    const apart = documentPlaces([5, 9, 6, 9, 7, 8], {
      endOfDocument: 9,
      resetPositions: true,
      resetAttention: true,
      maskLoss: true,
    });
    expect(apart.begins).toEqual([0, 2, 4]);
    expect([...apart.positions]).toEqual([0, 1, 0, 1, 0, 1]);
    expect([...apart.lossMask]).toEqual([1, 0, 1, 0, 1, 1]);
  });
});

describe("batches", () => {
  it("let a batch grow with what is consumed", () => {
    const rampUp = { start: 4, end: 16, increment: 4, samples: 300 };
    expect([0, 99, 100, 250, 300, 301].map((consumed) => rampedBatchSize(rampUp, consumed))).toEqual([
      4, 4, 8, 12, 16, 16,
    ]);
  });
});

describe("sentences gathered for BERT and T5", () => {
  it("are Megatron's", () => {
    const samples = sentenceSamples({
      documents: [0, 4, 5, 9, 15],
      lengths: Int32Array.of(5, 6, 7, 8, 9, 3, 4, 5, 6, 7, 8, 9, 10, 3, 4),
      maxSamples: 10,
      maxLength: 13,
      shortProbability: 0.1,
      seed: 1234,
      minSentences: 2,
    });
    expect(samples).toEqual([
      [13, 15, 13],
      [11, 13, 13],
      [0, 4, 13],
      [13, 15, 13],
      [5, 9, 13],
      [0, 4, 13],
      [5, 9, 13],
      [9, 11, 13],
      [9, 11, 13],
      [11, 13, 13],
    ]);
  });

  it("end where no document is fit", () => {
    const none = { documents: [0, 1], lengths: Int32Array.of(9), maxSamples: 5, maxLength: 8 };
    expect(sentenceSamples({ ...none, shortProbability: 0, seed: 1, minSentences: 2 })).toEqual([]);
  });
});

const vocabulary: MaskVocabulary = {
  size: 40,
  continuesWord: (token) => token >= 5 && token % 4 === 0,
  classify: 2,
  separate: 3,
  mask: 4,
  pad: 0,
};
const sentences = [
  [5, 6, 7, 8, 9],
  [10, 11, 12, 13],
  [14, 15, 16, 17, 18, 19, 20],
  [21, 22, 23],
];
const row = (text: string) => text.split(" ").map(Number);

describe("a BERT sample", () => {
  const options = { vocabulary, targetLength: 17, length: 24, nextSentence: true };

  it.each([
    [1234, 0.15, "2 5 6 7 8 4 4 11 12 13 14 15 16 17 18 3 21 22 23 3 0 0 0 0", { 5: 9, 6: 10 }, false],
    [1235, 0.15, "2 6 7 4 9 10 11 12 13 14 15 16 17 18 19 3 21 22 23 3 0 0 0 0", { 2: 7, 3: 8 }, false],
    [1241, 0.15, "2 15 16 17 18 19 20 21 22 23 3 6 7 8 9 10 4 4 13 3 0 0 0 0", { 16: 11, 17: 12 }, true],
    [
      1234,
      0.4,
      "2 5 6 4 17 4 4 11 12 13 14 15 16 17 18 3 21 4 23 3 0 0 0 0",
      { 3: 7, 4: 8, 5: 9, 6: 10, 16: 21, 17: 22 },
      false,
    ],
  ])("of seed %i, masked at %f, is Megatron's", (seed, maskProbability, text, labels, isRandom) => {
    const sample = bertSample(sentences, { ...options, maskProbability, seed });
    expect([...sample.tokens]).toEqual(row(text));
    const labelled = [...sample.labels].flatMap((label, position) => (label < 0 ? [] : [[position, label]]));
    expect(Object.fromEntries(labelled)).toEqual(labels);
    expect([...sample.lossMask]).toEqual([...sample.labels].map((label) => Number(label >= 0)));
    expect(sample.isRandom).toBe(isRandom);
    expect(sample.isTruncated).toBe(true);
    expect([...sample.paddingMask]).toEqual([...sample.tokens].map((_, position) => Number(position < 20)));
  });

  it("draws as often as Megatron's generator, and separates its parts", () => {
    const { types, random } = bertSample(sentences, { ...options, maskProbability: 0.15, seed: 1234 });
    expect([...types]).toEqual([...Array(16).fill(0), 1, 1, 1, 1, 0, 0, 0, 0]);
    expect(random.next()).toBe(256_878_637);
  });
});

it("T5's vocabulary has its marks and sentinels behind BERT's words, in Megatron's order", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  const path = join(folder, "vocab.txt");
  const words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[EOS]", "one", "##s"];
  writeFileSync(path, words.join("\n"));
  const tokenizer = await loadWordPiece(path, { lowercase: true, maxCharacters: 200 });
  expect(t5Vocabulary(tokenizer, 3)).toMatchObject({ begin: 8, end: 5, sentinels: [9, 10, 11], size: 12 });
  rmSync(folder, { recursive: true });
});

it("a T5 sample is Megatron's", () => {
  const sample = t5Sample(sentences, {
    vocabulary,
    begin: 40,
    end: 41,
    sentinels: [42, 43, 44, 45, 46, 47],
    targetLength: 17,
    length: 24,
    decoderLength: 16,
    maskProbability: 0.3,
    seed: 1234,
  });
  const padded = (text: string, length: number, fill: number) => [
    ...row(text),
    ...Array(length - row(text).length).fill(fill),
  ];
  expect([...sample.tokens]).toEqual(padded("42 6 43 9 10 11 12 13 14 15 16 17 44 19 20 45", 24, 0));
  expect([...sample.decoderTokens]).toEqual(padded("40 42 5 43 7 8 44 18 45 21", 16, 0));
  expect([...sample.labels]).toEqual(padded("42 5 43 7 8 44 18 45 21 41", 16, -1));
  expect([...sample.lossMask]).toEqual(padded("1 1 1 1 1 1 1 1 1 1", 16, 0));
});
