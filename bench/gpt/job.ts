import { AdamW, type Dataset, defineJob, GPT2LMHeadModel, ops, type TextBatch, textDataset } from "troupe";

/** The work of the PyTorch peer script: its model, its optimizer, its clipping, tokens of a file or at random. */
export default defineJob({
  config: {
    layers: 12,
    dim: 768,
    heads: 12,
    vocab: 50257,
    batch: 8,
    seq: 256,
    steps: 7,
    lr: 3e-4,
    clip: 1,
    dropout: 0,
    data: "",
    // For measured-job.ts: products between steps.
    betweenMs: 0,
    betweenDtype: "bfloat16",
  },
  training: ({ steps, batch, clip }) => ({
    steps,
    batchSize: batch,
    ...(clip > 0 ? { clipNorm: clip } : {}),
  }),
  data: (config, { seed }): Promise<Dataset<TextBatch>> | Dataset<TextBatch> =>
    config.data === ""
      ? randomTokens(config.vocab, config.seq, seed)
      : textDataset({ source: config.data, tokenizer: "byte", length: config.seq, seed }),
  model: (config) =>
    new GPT2LMHeadModel({
      vocab_size: config.vocab,
      n_layer: config.layers,
      n_head: config.heads,
      n_embd: config.dim,
      n_positions: config.seq,
      embd_pdrop: config.dropout,
      attn_pdrop: config.dropout,
      resid_pdrop: config.dropout,
    }),
  loss: (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
  optimizer: (parameters, config) =>
    new AdamW(parameters, { lr: config.lr, betas: [0.9, 0.95], weightDecay: 0.1, decay: "every parameter" }),
});

function randomTokens(vocabSize: number, length: number, seed: number): Dataset<TextBatch> {
  const batch = (_split: string, position: number, numSamples: number): TextBatch => {
    const uniform = ops.zeros([numSamples, length + 1]);
    ops.troupe.philoxUniform_(uniform, 0, vocabSize, seed, 0, position * (length + 1));
    const ids = uniform.to("int64"); // [samples, length + 1]
    return {
      inputIds: ids.narrow(1, 0, length).contiguous(),
      targets: ids.narrow(1, 1, length).contiguous(),
    };
  };
  return {
    facts: {
      source: "random tokens",
      vocabSize,
    },
    splits: { train: { numSamples: Number.POSITIVE_INFINITY } },
    batch,
    countTokens: ({ targets }) => targets.numel,
  };
}
