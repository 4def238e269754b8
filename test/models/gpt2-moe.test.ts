import { describe, expect, test } from "vitest";
import { bindRandomness, dematerialize, materialize, Randomness } from "../../src/compute/nn/index.ts";
import { AdamW, type LocalState, releaseState, stepLocal } from "../../src/compute/optim/index.ts";
import { backward, scope, tensor } from "../../src/compute/tensor/index.ts";
import { GPT2MoELMHeadModel, generate } from "../../src/library/models/index.ts";

const config = { vocab_size: 23, n_positions: 16, n_embd: 16, n_layer: 2, n_head: 2 };
// Nothing dropped: else what a text is continued by would depend on how many tokens come with it.
const mixture = { dropTokens: false };
const line = [3, 14, 1, 5, 9, 2, 6, 8, 7, 19, 4, 11, 0, 21, 13, 17];

function building(
  residual: boolean,
  body: (model: GPT2MoELMHeadModel, randomness: Randomness) => void,
): void {
  const model = new GPT2MoELMHeadModel(config, {
    numExperts: 4,
    residual,
    mixture,
  });
  const randomness = new Randomness(1);
  bindRandomness(model, randomness);
  materialize(model, { seed: 2 });
  body(model, randomness);
  dematerialize(model);
}

describe("a GPT-2 with experts", () => {
  test.each([false, true])("learns a line by heart and writes it, residual layer: %s", (residual) => {
    building(residual, (model, randomness) => {
      const spec = new AdamW(model.namedParameters(), { lr: 1e-2 });
      const moments: LocalState = new Map();
      let last = Number.NaN;
      for (let step = 1; step <= 120; step++) {
        randomness.step = step;
        scope(() => {
          const ids = tensor([line], { dtype: "int64" });
          const { loss, auxiliaryLoss } = model.forward(ids, { labels: ids });
          backward(loss);
          last = loss.item() - 0.01 * auxiliaryLoss.item();
        });
        stepLocal(model.namedParameters(), spec, moments, step);
      }
      expect(last).toBeLessThan(0.2);
      expect(generate(model, line.slice(0, 8), { maxNewTokens: 8, temperature: 0 })).toEqual(line);
      releaseState(moments);
    });
  });

  test("drops no token of a text that it generates, whatever is written beside", () => {
    const texts = [true, false].map((dropTokens) => {
      // Half of the tokens would find their expert full.
      const options = { dropTokens, evalCapacityFactor: 0.5, minCapacity: 1 };
      const model = new GPT2MoELMHeadModel(config, { numExperts: 4, mixture: options });
      materialize(model, { seed: 2 });
      const prompts = [line.slice(0, 5), line.slice(3, 4), line.slice(2, 9)];
      const asked = { maxNewTokens: 6, temperature: 1, seed: 4 };
      const together = generate(model, prompts, { ...asked, samples: 2 });
      const alone = prompts.flatMap((prompt, firstPrompt) =>
        generate(model, [prompt], { ...asked, samples: 2, firstPrompt }),
      );
      expect(together).toEqual(alone);
      const beams = generate(model, prompts, { ...asked, temperature: 0, numBeams: 2 });
      dematerialize(model);
      return [together, beams];
    });
    expect(texts[0]).toEqual(texts[1]);
  });

  test("adds the layers' auxiliary losses, weighted, to its loss", () => {
    building(false, (model) => {
      scope(() => {
        const ids = tensor([line], { dtype: "int64" });
        const { loss, auxiliaryLoss } = model.eval().forward(ids, { labels: ids });
        expect(auxiliaryLoss.item()).toBeGreaterThan(1.9); // two layers, each 1 at best, up to rounding
        const bare = new GPT2MoELMHeadModel(config, {
          numExperts: 4,
          auxiliaryWeight: 0,
          mixture,
        });
        materialize(bare, { seed: 2 });
        const without = bare.eval().forward(ids, { labels: ids }).loss.item();
        dematerialize(bare);
        expect(loss.item()).toBeCloseTo(without + 0.01 * auxiliaryLoss.item(), 5);
      });
    });
  });
});
