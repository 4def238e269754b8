// A small LLaMA learns to answer from chats alone, many of them in a row: only what the assistant says counts.
import { AdamW, Cosine, defineJob, loadTokenizer, readModelConfig, taskModel } from "troupe";
import { ChatTemplate } from "troupe/data";
import { chatLm as task } from "troupe/tasks";

export default defineJob({
  // `data`: chats, tokenizer, template and config.json, as prepare.ts beside this file makes them.
  config: { data: "chats", steps: 600, batch: 8, length: 512, lr: 3e-3, evaluateEvery: 50 },
  data: async ({ data, length }, { seed }) =>
    task.dataset(await task.read(data), {
      source: data,
      config: readModelConfig(data),
      tokenizer: await loadTokenizer(data),
      chatTemplate: await ChatTemplate.load(data),
      dynamicShapes: { window: 1, multiple: 8, isPacked: true },
      length,
      seed,
    }),
  training: ({ data, steps, batch, evaluateEvery }) => ({
    steps,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: evaluateEvery,
    // Tokenizer and template lie beside each checkpoint.
    companions: { folder: data },
  }),
  model: ({ data }, facts) => taskModel(task, readModelConfig(data), facts),
  loss: task.loss,
  weigh: task.weigh,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr, weightDecay: 0.01 }),
  schedule: (optimizer, { steps }) =>
    new Cosine(optimizer, { warmup: Math.min(40, steps), end: steps, minLr: 1e-4 }),
});
