// A small GPT on a text, and the loss of DPO.
import { AdamW, defineJob, GPT2LMHeadModel, type Tensor, textDataset } from "troupe";
import { dpoLoss, textLogProbs, tokenLogProbs } from "troupe/objectives";

/** Pairs of texts that begin alike, [N, T], and what the model said of their ends before it learned from any, [N]. */
type Pairs = Readonly<Record<"chosen" | "rejected" | "referenceChosen" | "referenceRejected", Tensor>>;

/** Log-probabilities of all of each text but its first `numGiven` tokens, [N]. */
function logProbsOf(model: GPT2LMHeadModel, tokens: Tensor, numGiven: number): Tensor {
  const rest = (tokens.shape[1] ?? 0) - 1;
  const { logits } = model.forward(tokens.narrow(1, 0, rest));
  const logProbs = tokenLogProbs(logits, tokens.narrow(1, 1, rest));
  const places = logProbs.narrow(1, numGiven - 1, rest + 1 - numGiven);
  return textLogProbs(places, places.detach().onesLike());
}

export default defineJob({
  config: { data: "README.md", length: 24 },
  training: () => ({ steps: 200, batchSize: 32, clipNorm: 1 }),
  data: ({ data, length }, { seed }) => textDataset({ source: data, tokenizer: "byte", length, seed }),
  model: ({ length }, { vocabSize }) =>
    new GPT2LMHeadModel({
      ...{ vocab_size: vocabSize, n_layer: 2, n_head: 2, n_embd: 64, n_positions: length },
      ...{ resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 },
    }),
  loss: (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
  optimizer: (parameters) => new AdamW(parameters, { lr: 3e-3 }),
  programs: {
    logProbs: (
      model,
      { tokens }: { readonly tokens: Tensor },
      { numGiven }: { readonly numGiven: number },
    ) => ({
      logProbs: logProbsOf(model, tokens, numGiven),
    }),
    dpo: (model, { chosen, rejected, ...reference }: Pairs, { numGiven }: { readonly numGiven: number }) => {
      const of = (tokens: Tensor) => logProbsOf(model, tokens, numGiven);
      return dpoLoss({ chosen: of(chosen), rejected: of(rejected), ...reference }, { beta: 0.1 });
    },
  },
});
