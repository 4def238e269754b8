// A small T5 learns to write the form of a word that a dictionary has it under, letter by letter, from nothing: "nominated" → "nominate".
import { AdamW, Cosine, defineJob, loadTokenizer, seq2seqLm as task, taskModel } from "troupe";

const t5 = {
  model_type: "t5",
  vocab_size: 29,
  d_model: 128,
  d_kv: 32,
  d_ff: 256,
  num_layers: 3,
  num_heads: 4,
  relative_attention_num_buckets: 16,
  relative_attention_max_distance: 24,
  feed_forward_proj: "gated-gelu",
  dropout_rate: 0.1,
  pad_token_id: 0,
  eos_token_id: 1,
  decoder_start_token_id: 0,
};

export default defineJob({
  // `data`: train.tsv, dev.tsv and tokenizer.json, as prepare.ts beside this file makes them.
  config: { data: "lemmas", steps: 2000, batch: 128, lr: 2e-3, evaluateEvery: 200 },
  data: async ({ data }, { seed }) =>
    task.dataset(await task.read(data), {
      source: data,
      config: t5,
      tokenizer: await loadTokenizer(data),
      seed,
    }),
  training: ({ steps, batch, evaluateEvery }) => ({
    steps,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: evaluateEvery,
  }),
  model: (_, facts) => taskModel(task, t5, facts),
  loss: task.loss,
  weigh: task.weigh,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr, weightDecay: 0.01 }),
  schedule: (optimizer, { steps }) =>
    new Cosine(optimizer, { warmup: Math.min(100, steps), end: steps, minLr: 1e-5 }),
});
