// The GPT of examples/grpo, with samples for a trial and a loss that holds the policy near a reference.
import { defineJob, type GPT2LMHeadModel, ops, type Tensor, zeros } from "troupe";
import { klEstimate, policyLoss, tokenLogProbs, weighedMean } from "troupe/objectives";
import grpo from "../../../examples/grpo/job.ts";

/** Tokens [N, 7]. */
interface Texts {
  readonly tokens: Tensor;
}

/** Weights of the tokens [N, 7], the advantage of each text [N], and what the reference says of its tokens [N, 6]. */
interface Rated extends Texts {
  readonly weights: Tensor;
  readonly advantages: Tensor;
  readonly reference: Tensor;
}

function logProbsOf(model: GPT2LMHeadModel, { tokens }: Texts): Tensor {
  const { logits } = model.forward(tokens.narrow(1, 0, 6));
  return tokenLogProbs(logits, tokens.narrow(1, 1, 6));
}

export default defineJob({
  ...grpo,
  training: () => ({ steps: 100, batchSize: 16, clipNorm: 1 }),
  data: () => ({
    facts: { source: "the script" },
    splits: { train: { numSamples: 16 } },
    batch: (_split: string, _position: number, numSamples: number) => ({
      tokens: zeros([numSamples, 7], { dtype: "int64" }),
      weights: zeros([numSamples, 7]),
      rewards: zeros([numSamples]),
      advantages: zeros([numSamples]),
    }),
  }),
  programs: {
    logProbs: (model: GPT2LMHeadModel, texts: Texts) => ({ logProbs: logProbsOf(model, texts) }),
    grpo: (model: GPT2LMHeadModel, { weights, advantages, reference, ...texts }: Rated) => {
      const logProbs = logProbsOf(model, texts);
      const ofAnswers = weights.narrow(1, 1, 6);
      const loss = policyLoss({ logProbs, advantages, weights: ofAnswers });
      return ops.add(loss, weighedMean(klEstimate(logProbs, reference, "k3"), ofAnswers).mul(0.05));
    },
  },
});
