// A loop that has an answer of the model marked in each step.
import { AdamW, defineLoop, GPT2LMHeadModel, textDataset } from "troupe";
import type { Judge } from "./judge.ts";

export default defineLoop(
  {
    config: { data: "README.md", steps: 4 },
    training: ({ steps }) => ({ steps, batchSize: 4 }),
    data: ({ data }, { seed }) => textDataset({ source: data, tokenizer: "byte", length: 32, seed }),
    model: (_, { vocabSize }) =>
      new GPT2LMHeadModel({ vocab_size: vocabSize, n_layer: 1, n_head: 2, n_embd: 16, n_positions: 32 }),
    optimizer: (parameters) => new AdamW(parameters, { lr: 3e-3 }),
  },
  (rank) => {
    // #region reach
    const judge = rank.actor<Judge>("judge");
    for (const { inputIds, targets } of rank.batches()) {
      rank.backward(rank.forward(() => rank.model.forward(inputIds, { targets }).loss));
      const answer = "not yet an answer";
      rank.log({ mark: judge.ask("mark", { answer }, { deadlineMs: 10_000 }) });
      rank.step();
    }
    // #endregion
  },
);
