import { evaluating } from "../../src/compute/nn/index.ts";
import { scope } from "../../src/compute/tensor/index.ts";
import { Ending } from "../../src/library/models/generation/ending.ts";
import type { GenerativeModel } from "../../src/library/models/generation/generative-model.ts";
import { Generator } from "../../src/library/models/generation/generator.ts";
import { settle } from "../../src/library/models/generation/options.ts";

/** Prompts of 9 to 79 tokens. */
export const ragged = (vocabSize: number): number[][] =>
  Array.from({ length: 24 }, (_, row) =>
    Array.from({ length: 9 + ((row * 37) % 71) }, (__, place) => (place * 5 + row) % vocabSize),
  );

/** Writes four texts of `length` tokens to each prompt. @returns the most bytes and positions of keys and values that were in use */
export function mostInUse(
  model: GenerativeModel,
  prompts: readonly (readonly number[])[],
  length: number,
): { readonly bytes: number; readonly numPositions: number; readonly numEnded: number } {
  const settled = settle(prompts, { maxNewTokens: length, samples: 4, stopTokens: [] }, {});
  using generator = new Generator(model, prompts, {
    options: settled,
    ending: new Ending(settled),
    adjust: undefined,
  });
  let [bytes, numPositions, numEnded] = [0, 0, 0];
  evaluating(model, () => {
    while (!generator.isDone) {
      numEnded += scope(() => generator.step()).length;
      bytes = Math.max(bytes, generator.used.bytes);
      numPositions = Math.max(numPositions, generator.used.numPositions);
    }
  });
  return { bytes, numPositions, numEnded };
}
