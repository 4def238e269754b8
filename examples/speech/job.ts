// A small wav2vec 2 learns to write down spoken digits, character by character, from nothing.
import { AdamW, Cosine, defineJob, speechRecognition as task, taskModel } from "troupe";

const wav2vec2 = {
  model_type: "wav2vec2",
  vocab_size: 20,
  hidden_size: 128,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  intermediate_size: 512,
  conv_dim: [64, 64, 64, 64, 64],
  conv_kernel: [10, 3, 3, 3, 2],
  conv_stride: [5, 2, 2, 2, 2],
  num_feat_extract_layers: 5,
  num_conv_pos_embeddings: 32,
  num_conv_pos_embedding_groups: 8,
  ctc_loss_reduction: "mean",
  apply_spec_augment: false,
  layerdrop: 0,
};

export default defineJob({
  // `data`: recordings of the Free Spoken Digit Dataset, digit_speaker_index.wav.
  config: { data: "fsdd", steps: 1500, batch: 16, lr: 5e-4, samples: 6000, evaluateEvery: 300 },
  data: async ({ data, samples }, { seed }) =>
    task.dataset(await task.read(data), { source: data, config: wav2vec2, length: samples, seed }),
  training: ({ steps, batch, evaluateEvery }) => ({
    steps,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: evaluateEvery,
  }),
  model: (_, facts) => taskModel(task, wav2vec2, facts),
  loss: task.loss,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr }),
  schedule: (optimizer, { steps }) => new Cosine(optimizer, { warmup: 100, end: steps, minLr: 1e-5 }),
});
