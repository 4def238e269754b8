import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../../src/compute/nn/index.ts";
import type { EventOf } from "../../../src/job/events/index.ts";
import { saveHuggingFaceFolder } from "../../../src/library/checkpoint/index.ts";
import { RobertaForMaskedLM, weightBytes } from "../../../src/library/models/index.ts";
import { readTensors } from "../../fixtures/read-tensors.ts";
import { type Outcome, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/jobs/sentences.ts", import.meta.url);

describe("a run that begins with a folder of another task", () => {
  const workspace = new Workspace();
  const folder = workspace.path("roberta");
  const dir = workspace.path("checkpoints");
  let outcome: Outcome;

  beforeAll(async () => {
    const sizes = { hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 32 };
    const model = new RobertaForMaskedLM({
      ...sizes,
      vocab_size: 32,
      max_position_embeddings: 16,
      hidden_dropout_prob: 0,
      attention_probs_dropout_prob: 0,
    });
    materialize(model, { seed: 3 });
    await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
    dematerialize(model);
    const options = { ranks: 2, zero: 3, checkpoint: { dir, everySteps: 30 } } as const;
    outcome = await runTiny(workspace, options, { folder }, job);
    if (outcome.error !== undefined) throw outcome.error;
  });
  afterAll(() => workspace[Symbol.dispose]());

  test("draws its new head, leaves out the old one, and says so", () => {
    const started = outcome.events.find(({ kind }) => kind === "run.started") as EventOf<"run.started">;
    const { fresh = [], dropped = [] } = started.pretrained ?? {};
    expect({ fresh, dropped: dropped.toSorted() }).toEqual({
      fresh: [
        "classifier.dense.weight",
        "classifier.dense.bias",
        "classifier.out_proj.weight",
        "classifier.out_proj.bias",
      ],
      dropped: [
        "lm_head.bias",
        "lm_head.dense.bias",
        "lm_head.dense.weight",
        "lm_head.layer_norm.bias",
        "lm_head.layer_norm.weight",
      ],
    });
  });

  test("learns what its labels say of rows of unequal length", () => {
    expect(outcome.losses[0]).toBeCloseTo(Math.log(2), 1);
    expect(outcome.losses.at(-1)).toBeLessThan(0.35); // half of what guessing costs
  });

  test("draws the head as a run from nothing does, on one rank as on two", async () => {
    const still = { folder, steps: 1 };
    const layouts = [
      { ranks: 1, zero: 0 },
      { ranks: 2, tp: 2 },
    ] as const;
    const losses: (number | undefined)[] = [];
    for (const layout of layouts) {
      const { losses: one, error } = await runTiny(workspace, layout, still, job);
      if (error !== undefined) throw error;
      losses.push(one[0]);
    }
    // The same weights; sums of features in another order.
    for (const loss of losses) expect(loss).toBeCloseTo(outcome.losses[0] ?? Number.NaN, 5);
  });

  test("saves a folder of the new task", async () => {
    const path = join(dir, "step-000030");
    const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
    expect(config).toMatchObject({
      architectures: ["RobertaForSequenceClassification"],
      model_type: "roberta",
    });
    const saved = await readTensors(join(path, "model.safetensors"));
    expect(saved.get("classifier.out_proj.weight")).toHaveLength(2 * 16);
  });
});
