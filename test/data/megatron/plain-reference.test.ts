import { describe, expect, it } from "vitest";
import { gptSamples, sentenceSamples, splitRanges } from "../../../src/library/data/index.ts";
import { blend } from "../../../src/library/data/megatron/blend.ts";
import { plainBlend, plainGpt, plainSentences, plainSplit, twister, twister64 } from "./plain-reference.ts";

const NUM_CASES = 150;

/** The same numbers each time, 0 ≤ n < below. */
function draws(seed: number): (below: number) => number {
  const next = twister(seed);
  return (below) => next() % below;
}

describe("beside a plain reference", () => {
  it("which itself draws what the standards print", () => {
    const [bits, wide] = [twister(5489), twister64(5489n)];
    for (let i = 1; i < 10_000; i++) {
      bits();
      wide();
    }
    expect([bits(), wide()]).toEqual([4123659995, 9981545732273789042n]);
  });

  it("GPT's samples are the same, whatever the lengths, the split, the number and the seed", () => {
    const draw = draws(11);
    let numSeparated = 0;
    for (let each = 0; each < NUM_CASES; each++) {
      const lengths = Array.from({ length: 2 + draw(40) }, () => 1 + draw(60));
      const begin = draw(lengths.length - 1);
      const documents = Array.from({ length: lengths.length - begin }, (_, place) => begin + place);
      const length = 1 + draw(50);
      const perEpoch = documents.reduce((sum, document) => sum + (lengths[document] as number), 0);
      const [numSamples, seed] = [1 + draw(1 + Math.floor((4 * perEpoch) / length)), draw(1 << 30)];
      const plain = plainGpt(lengths, documents, numSamples, length, seed);
      const own = gptSamples({ lengths: Int32Array.from(lengths), documents, numSamples, length, seed });
      expect({
        epochs: own.numEpochs,
        separates: own.separatesLastEpoch,
        laid: [...own.documents],
        bounds: [...own.bounds],
        order: [...own.order],
      }).toEqual(plain);
      numSeparated += Number(plain.separates);
    }
    expect(numSeparated).toBeGreaterThan(NUM_CASES / 10);
  });

  it("BERT's and T5's sentences are gathered the same, long ones and short documents among them", () => {
    const draw = draws(12);
    for (let each = 0; each < NUM_CASES; each++) {
      const documents = [0];
      for (let left = 1 + draw(30); left > 0; left--) documents.push((documents.at(-1) as number) + draw(9));
      const lengths = Array.from({ length: documents.at(-1) as number }, () =>
        draw(60) === 0 ? 505 + draw(20) : 1 + draw(40),
      );
      const short = [0, 0.1, 0.25, 0.5][draw(4)] as number;
      const least = (1 + draw(2)) as 1 | 2;
      const given = { maxSamples: 1 + draw(80), maxLength: 8 + draw(100), seed: draw(1 << 30), short, least };
      const epochs = 1 + draw(4);
      const own = sentenceSamples({
        ...{ documents, lengths: Int32Array.from(lengths), numEpochs: epochs, minSentences: least },
        ...{ maxSamples: given.maxSamples, maxLength: given.maxLength, shortProbability: short },
        seed: given.seed,
      });
      expect(own).toEqual(plainSentences(documents, lengths, { ...given, epochs }));
    }
  });

  it("splits and blends of three are the same", () => {
    const draw = draws(13);
    for (let each = 0; each < NUM_CASES; each++) {
      const weights = Array.from({ length: 1 + draw(3) }, (_, place) => draw(100) + (place === 0 ? 1 : 0));
      const size = 1 + draw(3000);
      const [train, validation, test] = splitRanges(weights.join(","), size);
      expect([train[0], train[1], validation[1], test[1]]).toEqual(plainSplit(weights, size));
      const shares = Array.from({ length: 3 }, () => (1 + draw(999)) / 100);
      const { datasets, samples } = blend(shares, 1 + draw(120));
      const own = [...datasets].map((dataset, place) => [dataset, samples[place] as number]);
      expect(own).toEqual(plainBlend(shares, datasets.length));
    }
  });
});
