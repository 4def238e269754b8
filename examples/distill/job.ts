// A GPT on a text: a wide one is the teacher, a narrow one the student that learns from what it says.
import { AdamW, defineJob, GPT2LMHeadModel, type Tensor, textDataset } from "troupe";
import { distillationLoss } from "troupe/objectives";

/** Texts of the student, [N, T]; the teacher's logits [N, T, V] for what follows each token; and weights [N, T]. */
type Taught = Readonly<Record<"tokens" | "teacher" | "weights", Tensor>>;

export default defineJob({
  config: { data: "README.md", length: 24, width: 96, layers: 3 },
  training: () => ({ steps: 300, batchSize: 32, clipNorm: 1 }),
  data: ({ data, length }, { seed }) => textDataset({ source: data, tokenizer: "byte", length, seed }),
  model: ({ length, width, layers }, { vocabSize }) =>
    new GPT2LMHeadModel({
      ...{ vocab_size: vocabSize, n_layer: layers, n_head: 2, n_embd: width, n_positions: length },
      ...{ resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 },
    }),
  loss: (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
  optimizer: (parameters) => new AdamW(parameters, { lr: 3e-3 }),
  programs: {
    logits: (model, { tokens }: { readonly tokens: Tensor }) => ({ logits: model.forward(tokens).logits }),
    distill: (model, { tokens, teacher, weights }: Taught) =>
      distillationLoss(model.forward(tokens).logits, teacher, weights, { divergence: "reverse" }),
  },
});
