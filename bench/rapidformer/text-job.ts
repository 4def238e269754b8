// The job of the convergence runs: a small GPT on the letters of a text.

import { AdamW } from "../../src/compute/optim/index.ts";
import { defineJob } from "../../src/job/index.ts";
import { textDataset } from "../../src/library/data/index.ts";
import { modelOf } from "./job.ts";

export default defineJob({
  config: {
    text: "",
    cache: "",
    layers: 2,
    width: 64,
    heads: 4,
    length: 64,
    batch: 16,
    steps: 100,
    lr: 3e-3,
  },
  training: ({ steps, batch }) => ({ steps, batchSize: batch, clipNorm: 1 }),
  data: ({ text, cache, length }, { seed }) =>
    textDataset({ source: text, cacheDir: cache, tokenizer: "byte", length, seed }),
  model: (config, { vocabSize }) => modelOf("gpt", { ...config, vocab: vocabSize }),
  loss: (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr, weightDecay: 0.1 }),
});
