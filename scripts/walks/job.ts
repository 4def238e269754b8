// The smallest job whose batches and losses note the call stack that leads to them; see probes.mjs.
import { AdamW, defineJob, GPT2LMHeadModel, tensor } from "troupe";

const { noteWalk } = globalThis as unknown as { readonly noteWalk: (what: string) => void };

export default defineJob({
  config: {},
  training: () => ({ steps: 2, batchSize: 4 }),
  data: () => ({
    facts: { source: "walks" },
    splits: { train: { numSamples: 64 } },
    batch(_split: string, _position: number, numSamples: number) {
      noteWalk("batch");
      const ids = Array.from({ length: numSamples }, () => [0, 1, 2, 3, 4, 5, 6, 7]);
      return { inputIds: tensor(ids, { dtype: "int64" }), targets: tensor(ids, { dtype: "int64" }) };
    },
  }),
  model: () => new GPT2LMHeadModel({ vocab_size: 32, n_layer: 1, n_head: 2, n_embd: 8, n_positions: 8 }),
  loss(model, { inputIds, targets }) {
    noteWalk("batch");
    return model.forward(inputIds, { targets }).loss;
  },
  optimizer: (parameters) => new AdamW(parameters, { lr: 1e-3 }),
});
