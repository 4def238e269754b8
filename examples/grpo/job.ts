// A small GPT and the loss of GRPO. It sees no solved problem: a batch is texts of its own, and how good they are.
import { AdamW, type Dataset, defineJob, GPT2LMHeadModel, type Tensor } from "troupe";
import { policyLoss, tokenLogProbs } from "troupe/objectives";

/** Tokens and their weights, [N, T]; the reward and the advantage of each text, [N]. */
type Rated = Readonly<Record<"tokens" | "weights" | "rewards" | "advantages", Tensor>>;

const sizes = { vocab_size: 11, n_layer: 2, n_head: 4, n_embd: 64, n_positions: 7 };

export default defineJob({
  config: {},
  training: () => ({ steps: 500, batchSize: 1024, clipNorm: 1 }),
  data: (): Dataset<Rated> => ({
    facts: { source: "the script" },
    splits: { train: { numSamples: 1 } },
    batch: () => Promise.reject(new Error("there is no data")),
  }),
  model: () => new GPT2LMHeadModel({ ...sizes, resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 }),
  loss: (model, { tokens, weights, rewards, advantages }, rank) => {
    rank.log({ reward: rewards.mean().item() });
    const { logits } = model.forward(tokens.narrow(1, 0, 6));
    const logProbs = tokenLogProbs(logits, tokens.narrow(1, 1, 6));
    return policyLoss({ logProbs, advantages, weights: weights.narrow(1, 1, 6) });
  },
  optimizer: (parameters) => new AdamW(parameters, { lr: 1e-3, weightDecay: 0 }),
});
