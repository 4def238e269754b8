import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dematerialize, type Module, materialize } from "../../src/compute/nn/index.ts";
import { setInvariant } from "../../src/compute/tensor/index.ts";
import { type GeneratedText, type GPT2LMHeadModel, generateTexts } from "../../src/library/models/index.ts";
import { drawn, families, logProbsByTrainer, prompts } from "./invariant-texts.ts";

describe.each(
  Object.keys(families).flatMap((name) =>
    (["float32", "bfloat16"] as const).map((dtype) => [name, dtype] as const),
  ),
)("an invariant forward of %s in %s", (name, dtype) => {
  const model = families[name]?.() as Module & GPT2LMHeadModel;
  let texts: readonly GeneratedText[] = [];

  beforeAll(() => {
    materialize(model, { seed: 5, dtype });
  });
  afterAll(() => dematerialize(model));
  beforeEach(() => {
    setInvariant(true);
    texts = generateTexts(model, prompts, { samples: 2, maxNewTokens: 19, seed: 4, stopTokens: [3, 40] });
  });
  afterEach(() => {
    setInvariant(false);
  });

  const byTrainer = (rows: readonly GeneratedText[], isPacked = false) =>
    logProbsByTrainer(model, rows, isPacked);

  test("gives what is drawn the log-probabilities that a trainer finds, to the bit", () => {
    expect(byTrainer(texts)).toEqual(drawn(texts));
    expect(byTrainer(texts, true)).toEqual(drawn(texts));
    for (const text of texts.slice(0, 3)) expect(byTrainer([text])).toEqual(drawn([text]));
  });

  test("writes the same alone and with few slots", () => {
    const options = { samples: 2, maxNewTokens: 19, seed: 4, stopTokens: [3, 40] };
    expect(generateTexts(model, prompts, { ...options, slots: 3 })).toEqual(texts);
    for (const [index, prompt] of prompts.entries())
      expect(generateTexts(model, [prompt], { ...options, firstPrompt: index })).toEqual(
        texts.slice(2 * index, 2 * index + 2),
      );
  });

  test("needs its rows' own order: without it some bits differ", () => {
    setInvariant(false);
    const plain = generateTexts(model, prompts, {
      samples: 2,
      maxNewTokens: 19,
      seed: 4,
      stopTokens: [3, 40],
    });
    expect(byTrainer(plain)).not.toEqual(drawn(plain));
  });
});
