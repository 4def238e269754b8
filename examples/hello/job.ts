// The job: the model, its data and its loss. It runs inside every rank, but is written for one device.
import { AdamW, defineJob, GPT2LMHeadModel, textDataset } from "troupe";

export default defineJob({
  config: { data: "README.md", steps: 60, layers: 2 },
  training: ({ steps }) => ({ steps, batchSize: 16, clipNorm: 1 }),
  data: ({ data }, { seed }) => textDataset({ source: data, tokenizer: "byte", length: 32, seed }),
  model: ({ layers }, { vocabSize }) =>
    new GPT2LMHeadModel({ vocab_size: vocabSize, n_layer: layers, n_head: 2, n_embd: 64, n_positions: 32 }),
  loss: (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
  optimizer: (parameters) => new AdamW(parameters, { lr: 3e-3 }),
});
