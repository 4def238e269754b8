import { AdamW, defineLoop, GPT2LMHeadModel, TroupeError, textDataset } from "troupe";
import type { Judge } from "./judge.ts";

/** A tiny model whose loop has a judge mark every step, and makes the judge fall after step `fallsAfter`. */
export default defineLoop(
  {
    config: { steps: 6, fallsAfter: -1, judge: "judge", isPatient: false },
    training: ({ steps }) => ({ steps, batchSize: 4 }),
    data: (_, { seed }) => textDataset({ source: "README.md", tokenizer: "byte", length: 16, seed }),
    model: (_, { vocabSize }) =>
      new GPT2LMHeadModel({ vocab_size: vocabSize, n_layer: 1, n_head: 1, n_embd: 8, n_positions: 16 }),
    optimizer: (parameters) => new AdamW(parameters, { lr: 1e-3 }),
  },
  (rank) => {
    const judge = rank.actor<Judge>(rank.config.judge);
    const mark = (): number => judge.ask("mark", { text: "good, very good" }, { deadlineMs: 20_000 });
    for (const { inputIds, targets } of rank.batches()) {
      rank.backward(rank.forward(() => rank.model.forward(inputIds, { targets }).loss));
      if (rank.numSteps === rank.config.fallsAfter && rank.index === 0)
        judge.tell("endLater", { why: "on purpose" });
      rank.log({ marks: rank.config.isPatient ? again(mark) : mark() });
      rank.step();
      judge.tell("note", { text: `rank ${rank.index}` });
    }
  },
);

/** Asks until the answer does not come from an actor that ends. */
function again(ask: () => number): number {
  for (;;) {
    try {
      return ask();
    } catch (error) {
      if (!(error instanceof TroupeError) || error.code !== "ACTOR_LOST") throw error;
    }
  }
}
