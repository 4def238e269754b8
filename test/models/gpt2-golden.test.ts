import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GPT2LMHeadModel, loadWeights } from "../../src/models/index.ts";
import { dematerialize, materialize } from "../../src/nn/index.ts";
import { AdamW, type AdamWMoments, stepLocal } from "../../src/optim/index.ts";
import { backward, noGrad, scope, type Tensor } from "../../src/tensor/index.ts";
import { openGolden } from "./golden.ts";

const golden = openGolden("gpt2");

/** Largest difference, relative to the largest expected value. */
function relativeError(got: Tensor, expected: Tensor): number {
  const [a, b] = [got, expected].map((x) => x.to("float64").toTypedArray() as Float64Array);
  if (!a || !b || a.length !== b.length) return Number.POSITIVE_INFINITY;
  const largest = b.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return a.reduce((most, value, index) => Math.max(most, Math.abs(value - (b[index] ?? 0))), 0) / largest;
}

describe.skipIf(golden === undefined)("GPT-2 equals Hugging Face's reference state", () => {
  if (golden === undefined) return;
  const { config, recipe, state, weights } = golden;
  const model = new GPT2LMHeadModel(config);
  beforeEach(() => {
    materialize(model, { seed: 0 });
    loadWeights(model, weights);
  });
  afterEach(() => dematerialize(model));

  test("in its logits, within 1e-5", () => {
    scope(() => {
      const { logits } = noGrad(() => model.forward(state.read("input.input_ids")));
      expect(relativeError(logits, state.read("output.logits"))).toBeLessThan(1e-5);
    });
  });

  test("in its loss and every gradient, within 1e-5", () => {
    scope(() => {
      const labels = state.read("input.labels");
      const { loss } = model.forward(state.read("input.input_ids"), { labels });
      expect(relativeError(loss.view([1]), state.read("output.loss"))).toBeLessThan(1e-5);
      backward([loss]);
      for (const [name, { tensor }] of model.namedParameters()) {
        expect(relativeError(tensor.grad as Tensor, state.read(`grad.${name}`)), name).toBeLessThan(1e-5);
      }
    });
  });

  test.each([
    ["as they are", "losses", Number.POSITIVE_INFINITY],
    ["clipped to norm 1", "losses_clip_1", 1],
  ] as const)("in ten AdamW losses, gradients %s, within 1e-4", (_, expected, clipNorm) => {
    const { lr, betas, eps, weight_decay } = recipe.adamw;
    const parameters = model.namedParameters();
    const spec = new AdamW(parameters, {
      lr,
      betas,
      eps,
      weightDecay: weight_decay,
      decay: "every parameter",
    });
    const moments: AdamWMoments = new Map();
    for (const [index, expectedLoss] of recipe[expected].entries()) {
      const loss = scope(() => {
        const [inputIds, labels] = [state.read("input.input_ids"), state.read("input.labels")];
        const { loss } = model.forward(inputIds, { labels });
        backward([loss]);
        return loss.item();
      });
      expect(Math.abs(loss - expectedLoss), `step ${index + 1}`).toBeLessThan(1e-4);
      const norm = stepLocal(parameters, spec, moments, index + 1, { clipNorm });
      if (clipNorm > 1) expect(norm).toBeCloseTo(recipe.grad_norms[index] ?? Number.NaN, 3);
    }
    for (const { expAvg, expAvgSq } of moments.values())
      for (const moment of [expAvg, expAvgSq]) moment.dispose();
  });
});
