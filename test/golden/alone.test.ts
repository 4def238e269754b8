import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { AdamW, type LocalState, releaseState, stepLocal } from "../../src/compute/optim/index.ts";
import { backward, noGrad, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import type { TaskModel } from "../../src/library/models/index.ts";
import {
  bareNames,
  batchOf,
  declareGolden,
  type Golden,
  GRADIENT_FLOOR,
  goldenFolders,
  loadGolden,
  openGolden,
  outputsOf,
  questionOf,
  relativeError,
} from "./golden.ts";

const numbers = (tensor: Tensor) => tensor.to("float64").toTypedArray() as Float64Array;
const errorOf = (got: Tensor, expected: Tensor, floor = 0) =>
  relativeError(numbers(got), numbers(expected), floor);
const largestOf = (tensor: Tensor) => Math.max(...numbers(tensor).map(Math.abs));

const folders = goldenFolders();

for (const { name, lacks } of folders) if (lacks !== undefined) test.todo(`golden/${name}: ${lacks}`);

// None where the reference states are not beside the repository.
for (const folder of folders.filter(({ lacks }) => lacks === undefined)) {
  describe(`golden/${folder.name} alone equals transformers`, () => {
    let golden: Golden;
    let model: TaskModel;

    beforeAll(async () => {
      golden = await openGolden(folder.path);
      model = declareGolden(folder);
      model.eval();
      materialize(model, { seed: 0 });
    });
    // A test that failed half-way leaves gradients to the next.
    afterEach(() => {
      for (const { tensor, trainable } of model.parameters()) if (trainable) tensor.grad = null;
    });
    afterAll(async () => {
      dematerialize(model);
      for (const tensor of golden.state.values()) tensor.dispose();
    });

    test("in every output, the loss and every gradient, within 1e-5", async () => {
      await loadGolden(model, folder);
      const batch = batchOf(golden.state);
      const { loss: expectedLoss, ...outputs } = outputsOf(golden.state);
      scope(() => {
        const answer = noGrad(() => model.forward(questionOf(batch, folder.config)));
        expect(Object.keys(answer)).toEqual(expect.arrayContaining(Object.keys(outputs)));
        for (const [name, expected] of Object.entries(outputs)) {
          expect(answer[name]?.shape, name).toEqual(expected.shape);
          expect(errorOf(answer[name] as Tensor, expected), name).toBeLessThan(1e-5);
        }
        const { loss } = model.forward(batch) as { loss: Tensor };
        expect(errorOf(loss.view([1]), expectedLoss as Tensor)).toBeLessThan(1e-5);
        backward(loss);
        checkGradients(model, golden);
      });
    });

    test.each([
      ["as they are", "losses", Number.POSITIVE_INFINITY],
      ["clipped to norm 1", "losses_clip_1", 1],
    ] as const)("in ten AdamW losses, gradients %s, within 1e-4", async (_, losses, clipNorm) => {
      await loadGolden(model, folder);
      const { lr, betas, eps, weight_decay: weightDecay } = golden.recipe.adamw;
      const parameters = model.namedParameters();
      const spec = new AdamW(parameters, { lr, betas, eps, weightDecay, decay: "every parameter" });
      const moments: LocalState = new Map();
      for (const [index, expectedLoss] of golden.recipe[losses].entries()) {
        const lossNats = scope(() => {
          const { loss } = model.forward(batchOf(golden.state)) as { loss: Tensor };
          backward(loss);
          return loss.item();
        });
        // Relative above 1: a loss of 30 has no more digits in float32 than one of 3.
        expect(relativeError([lossNats], [expectedLoss], 1), `step ${index + 1}`).toBeLessThan(1e-4);
        const norm = stepLocal(parameters, spec, moments, index + 1, { clipNorm });
        if (losses === "losses") {
          expect(relativeError([norm], [golden.recipe.grad_norms[index] ?? Number.NaN])).toBeLessThan(1e-3);
        }
      }
      releaseState(moments);
    });
  });
}

/** Names are those of transformers' modules, which their files may spell otherwise. */
function checkGradients(model: TaskModel, { state }: Golden): void {
  const bare = bareNames(model);
  const expected = new Map(
    [...state]
      .filter(([name]) => name.startsWith("grad."))
      .map(([name, gradient]) => [bare(name.slice("grad.".length)), gradient]),
  );
  const floor = GRADIENT_FLOOR * Math.max(...[...expected.values()].map(largestOf));
  for (const [name, { tensor }] of model.namedParameters()) {
    const gradient = expected.get(bare(name));
    expected.delete(bare(name));
    // Neither side has gradients of frozen parameters, or of those that no output depends on.
    if (gradient === undefined) expect(tensor.grad, name).toBeNull();
    else expect(errorOf(tensor.grad as Tensor, gradient, floor), name).toBeLessThan(1e-5);
  }
  expect([...expected.keys()]).toEqual([]);
}
