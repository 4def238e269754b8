import { expect, it } from "vitest";
import { changesSince } from "../../../src/actors/trainer/resume/changes.ts";
import { recipeOf } from "../../../src/actors/trainer/resume/recipe.ts";
import type { TrainerState } from "../../../src/library/checkpoint/index.ts";

it("shows the rates of a schedule at its first, middle and last step where they differ, and no digest", () => {
  const recipe = (lrAt: (step: number) => number) =>
    recipeOf({
      module: { file: "job.ts", sha256: "" },
      training: { steps: 10, batchSize: 4 },
      steps: 10,
      isStepsAsked: false,
      batchSize: 4,
      precision: "float32",
      optimizers: [],
      schedules: [{ lrAt }],
    });
  const config = {};
  const before = { step: 5, seed: 1, job: config, recipe: recipe((step) => 0.1 / step) };
  const now = { config, recipe: recipe((step) => 0.2 / step) };
  expect(changesSince(before as unknown as TrainerState, now)).toEqual([
    {
      of: "training",
      name: "schedule.rates",
      was: "0.1 at step 1, 0.02 at step 5, 0.01 at step 10",
      is: "0.2 at step 1, 0.04 at step 5, 0.02 at step 10",
    },
  ]);
});
