// The same training as a loop of one's own: every rank runs it, on its share of each batch.
import { AdamW, defineLoop, GPT2LMHeadModel, textDataset } from "troupe";

export default defineLoop(
  {
    config: { data: "README.md", steps: 60, layers: 2 },
    training: ({ steps }) => ({ steps, batchSize: 16, clipNorm: 1 }),
    data: ({ data }, { seed }) => textDataset({ source: data, tokenizer: "byte", length: 32, seed }),
    model: ({ layers }, { vocabSize }) =>
      new GPT2LMHeadModel({ vocab_size: vocabSize, n_layer: layers, n_head: 2, n_embd: 64, n_positions: 32 }),
    optimizer: (parameters) => new AdamW(parameters, { lr: 3e-3 }),
  },
  (rank) => {
    for (const { inputIds, targets } of rank.batches()) {
      const loss = rank.forward(() => rank.model.forward(inputIds, { targets }).loss);
      rank.backward(loss);
      rank.step();
    }
  },
);
