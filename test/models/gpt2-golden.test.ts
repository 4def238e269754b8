import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { GPT2LMHeadModel, loadWeights } from "../../src/models/index.ts";
import { dematerialize, materialize } from "../../src/nn/index.ts";
import { AdamW, type LocalState, releaseState, stepLocal } from "../../src/optim/index.ts";
import { backward, noGrad, scope, type Tensor } from "../../src/tensor/index.ts";
import { type Golden, goldenPath, openGolden } from "./golden.ts";

const path = goldenPath("gpt2");

/** Largest difference, relative to the largest expected value. */
function relativeError(got: Tensor, expected: Tensor): number {
  const [a, b] = [got, expected].map((x) => x.to("float64").toTypedArray() as Float64Array);
  if (!a || !b || a.length !== b.length) return Number.POSITIVE_INFINITY;
  const largest = b.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return a.reduce((most, value, index) => Math.max(most, Math.abs(value - (b[index] ?? 0))), 0) / largest;
}

// Skipped where the reference states are not beside the repository.
describe.skipIf(path === undefined)("GPT-2 equals Hugging Face's reference state", () => {
  let golden: Golden;
  let model: GPT2LMHeadModel;
  const expected = (name: string) => golden.state.get(name) as Tensor;

  beforeAll(async () => {
    golden = await openGolden(path as string);
    model = new GPT2LMHeadModel(golden.config);
    materialize(model, { seed: 0 });
  });
  beforeEach(() => loadWeights(model, golden.folder));
  afterAll(async () => {
    dematerialize(model);
    for (const tensor of golden.state.values()) tensor.dispose();
    await golden.folder.close();
  });

  test("in its logits, within 1e-5", () => {
    scope(() => {
      const { logits } = noGrad(() => model.forward(expected("input.input_ids")));
      expect(relativeError(logits, expected("output.logits"))).toBeLessThan(1e-5);
    });
  });

  test("in its loss and every gradient, within 1e-5", () => {
    scope(() => {
      const { loss } = model.forward(expected("input.input_ids"), { labels: expected("input.labels") });
      expect(relativeError(loss.view([1]), expected("output.loss"))).toBeLessThan(1e-5);
      backward(loss);
      for (const [name, { tensor }] of model.namedParameters()) {
        expect(relativeError(tensor.grad as Tensor, expected(`grad.${name}`)), name).toBeLessThan(1e-5);
        tensor.grad = null;
      }
    });
  });

  test.each([
    ["as they are", "losses", Number.POSITIVE_INFINITY],
    ["clipped to norm 1", "losses_clip_1", 1],
  ] as const)("in ten AdamW losses, gradients %s, within 1e-4", (_, losses, clipNorm) => {
    const { lr, betas, eps, weight_decay } = golden.recipe.adamw;
    const parameters = model.namedParameters();
    const spec = new AdamW(parameters, {
      lr,
      betas,
      eps,
      weightDecay: weight_decay,
      decay: "every parameter",
    });
    const moments: LocalState = new Map();
    for (const [index, expectedLoss] of golden.recipe[losses].entries()) {
      const lossNats = scope(() => {
        const { loss } = model.forward(expected("input.input_ids"), { labels: expected("input.labels") });
        backward(loss);
        return loss.item();
      });
      expect(Math.abs(lossNats - expectedLoss), `step ${index + 1}`).toBeLessThan(1e-4);
      const norm = stepLocal(parameters, spec, moments, index + 1, { clipNorm });
      if (losses === "losses") expect(norm).toBeCloseTo(golden.recipe.grad_norms[index] ?? Number.NaN, 3);
    }
    releaseState(moments);
  });
});
