import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  accuracy,
  answerF1,
  characterErrorRate,
  editDistance,
  entityF1,
  exactMatch,
  f1Score,
  matthewsCorrelation,
  pearson,
  perplexity,
  recallAt,
  spearman,
  topAccuracy,
  wordErrorRate,
} from "../../src/library/metrics/index.ts";

/** Guesses and labels of `numClasses`, as many of both. */
const pairs = (numClasses: number) =>
  fc
    .array(fc.tuple(fc.nat(numClasses - 1), fc.nat(numClasses - 1)), { minLength: 1, maxLength: 40 })
    .map((all) => [all.map(([guess]) => guess), all.map(([, label]) => label)] as const);

describe("metrics", () => {
  it("have the values worked out by hand on one list of three classes", () => {
    const labels = [0, 1, 2, 2, 1, 0, 1, 2, 0, 0];
    const guesses = [0, 2, 2, 1, 1, 0, 0, 2, 0, 1];
    // accuracy_score, f1_score(average="macro"), f1_score(average=None)[1], matthews_corrcoef
    expect(accuracy(guesses, labels)).toBe(0.6);
    expect(f1Score(guesses, labels, { kind: "macro" })).toBeCloseTo((0.75 + 1 / 3 + 2 / 3) / 3, 15);
    expect(f1Score(guesses, labels, { kind: "class", class: 1 })).toBeCloseTo(1 / 3, 15);
    expect(matthewsCorrelation(guesses, labels)).toBeCloseTo(26 / 66, 15);
  });

  it("have Matthews' correlation of two classes by its definition, which is Pearson's", () => {
    fc.assert(
      fc.property(pairs(2), ([guesses, labels]) => {
        expect(matthewsCorrelation(guesses, labels)).toBeCloseTo(pearson(guesses, labels), 12);
      }),
    );
  });

  it("have F1 as the harmonic mean of precision and recall, for any class", () => {
    fc.assert(
      fc.property(pairs(4), fc.nat(3), ([guesses, labels], wanted) => {
        const both = labels.filter((label, index) => label === wanted && guesses[index] === wanted).length;
        const precision = both / guesses.filter((guess) => guess === wanted).length;
        const recall = both / labels.filter((label) => label === wanted).length;
        const expected = both === 0 ? 0 : (2 * precision * recall) / (precision + recall);
        expect(f1Score(guesses, labels, { kind: "class", class: wanted })).toBeCloseTo(expected, 12);
      }),
    );
  });

  it("rank numbers for Spearman's correlation, and let equal ones share a rank", () => {
    expect(spearman([1, 2, 3, 100], [1, 2, 3, 4])).toBeCloseTo(1, 15);
    expect(spearman([1, 1, 2], [1, 2, 3])).toBeCloseTo(Math.sqrt(3) / 2, 12);
    expect(spearman([1, 1], [1, 2])).toBe(0);
  });

  it("give a constant the correlation 0, whatever its mean is rounded to", () => {
    for (const constant of [0.1, 0.7, 1e-9, 3]) {
      const same = [constant, constant, constant];
      expect(pearson(same, same)).toBe(0);
      expect(pearson(same, [1, 2, 4])).toBe(0);
      expect(spearman(same, same)).toBe(0);
    }
  });

  it("count a label among the first k, the lower class first of equal scores", () => {
    const scores = [
      [0.1, 0.5, 0.4],
      [0.3, 0.3, 0.3],
    ];
    expect(topAccuracy(scores, [2, 1], 1)).toBe(0);
    expect(topAccuracy(scores, [2, 1], 2)).toBe(1);
    expect(
      recallAt(
        1,
        [
          [1, 0],
          [0, 1],
        ],
        [
          [1, 0],
          [0, 1],
        ],
      ),
    ).toBe(1);
    expect(
      recallAt(
        1,
        [
          [1, 0],
          [0, 1],
        ],
        [
          [0, 1],
          [1, 0],
        ],
      ),
    ).toBe(0);
  });

  it("count edits as few as possible: never fewer than lengths differ, and a triangle holds", () => {
    const text = fc.string({ maxLength: 8 }).map((value) => [...value]);
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        expect(editDistance(a, b)).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
        expect(editDistance(a, a)).toBe(0);
      }),
    );
    expect(editDistance([..."kitten"], [..."sitting"])).toBe(3);
    expect(wordErrorRate(["one too", "three"], ["one two", "three four"])).toBe(0.5);
    expect(characterErrorRate(["ad"], ["abcd"])).toBe(0.5);
  });

  it("score answers and names as SQuAD's and CoNLL's scripts do", () => {
    expect(exactMatch(["The Cat!", "dog"], [["a cat"], ["cat", "the dogs"]])).toBe(0.5);
    expect(answerF1(["the big cat"], [["cat"]])).toBeCloseTo(2 / 3, 15);
    const right = [["B-PER", "I-PER", "O", "B-LOC"]];
    expect(entityF1(right, right)).toBe(1);
    expect(entityF1([["B-PER", "O", "O", "B-LOC"]], right)).toBe(0.5);
    expect(entityF1([["I-PER", "I-PER", "O", "I-LOC"]], right)).toBe(1); // an I- without a beginning begins
    expect(entityF1([["O", "O", "O", "O"]], right)).toBe(0);
    expect(perplexity(3 * Math.log(7), 3)).toBeCloseTo(7, 12);
  });
});
