// One comparison as a job: the task's own data, loss and score, from a folder of initial weights.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AdamW, defineJob } from "troupe";
import { type TaskFacts, taskModel, taskNamed } from "../../src/job/tasks/index.ts";
import type { Batch, TensorBatch } from "../../src/library/data/index.ts";
import { type CaseName, cases, type LearningCase, openCase, scheduleOf } from "./cases.ts";

const taskOf = (name: string) => taskNamed(cases[name as CaseName].task);

/** As the job has no say in the task's types, neither have its functions. */
let opened = "";

export default defineJob({
  config: { case: "bert", root: "", folder: "", seed: 1, shuffled: 0, steps: 0, evaluate: 1 },
  data: async (config) => {
    const name = config.case as CaseName;
    const { task, examples, tokenizer } = await openCase(name, config.root, config.shuffled === 1);
    const { length, config: fields }: LearningCase = cases[name];
    return task.dataset(examples, {
      source: name,
      config: fields,
      tokenizer,
      length,
      seed: config.seed,
    });
  },
  training: ({ case: name, steps, folder, evaluate }) => ({
    steps,
    batchSize: cases[name as CaseName].batch,
    pretrained: folder,
    ...(evaluate === 1 && { evaluateEverySteps: steps }),
  }),
  model: ({ case: name, folder }, facts: TaskFacts) => {
    opened = name;
    const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Record<string, unknown>;
    return taskModel(taskOf(name), config, facts);
  },
  loss: (model, batch, rank) => taskOf(opened).loss(model, batch as never, rank),
  weigh: (batch: Batch, config) => taskOf(config.case).weigh?.(batch) ?? rowsOf(batch),
  predict: (model, batch: TensorBatch) => taskOf(opened).predict(model, batch as never),
  optimizer: (parameters, { case: name }) =>
    new AdamW(parameters, {
      lr: cases[name as CaseName].lr,
      betas: [0.9, 0.999],
      weightDecay: 0.01,
      decay: "every parameter",
    }),
  schedule: (optimizer, { steps }) => scheduleOf(optimizer, steps),
});

/** A mean over rows weighs what it has of them. */
function rowsOf(batch: Batch): number {
  const [tensor] = Object.values(batch) as { readonly shape: readonly number[] }[];
  return tensor?.shape[0] ?? 1;
}
