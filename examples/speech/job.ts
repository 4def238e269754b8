// A small wav2vec 2 learns to write down spoken digits, from nothing.
import { AdamW, Cosine, defineJob, type SpokenText, speechRecognition as task, taskModel } from "troupe";

const wav2vec2 = {
  model_type: "wav2vec2",
  vocab_size: 12,
  hidden_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 512,
  // A frame each 80 ms: of so few, CTC soon learns which one speaks.
  conv_dim: [64, 64, 128, 128],
  conv_kernel: [80, 8, 8, 4],
  conv_stride: [10, 4, 4, 4],
  conv_bias: true,
  num_feat_extract_layers: 4,
  feat_extract_norm: "layer",
  do_stable_layer_norm: true,
  num_conv_pos_embeddings: 16,
  num_conv_pos_embedding_groups: 8,
  ctc_loss_reduction: "mean",
  apply_spec_augment: false,
  layerdrop: 0,
};

const words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** A figure is written for the word of a digit: one sign a recording. */
const figures = (spoken: readonly SpokenText[] = []) =>
  spoken.map(({ samples, text }) => ({
    samples,
    text: words.includes(text) ? `${words.indexOf(text)}` : text,
  }));

export default defineJob({
  // `data`: recordings of the Free Spoken Digit Dataset, digit_speaker_index.wav.
  config: { data: "fsdd", steps: 800, batch: 16, lr: 1e-3, samples: 6000, evaluateEvery: 100 },
  data: async ({ data, samples }, { seed }) => {
    const { train, validation } = await task.read(data);
    return task.dataset(
      { train: figures(train), validation: figures(validation) },
      { source: data, config: wav2vec2, length: samples, seed },
    );
  },
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
  schedule: (optimizer, { steps }) =>
    new Cosine(optimizer, { warmup: Math.min(50, steps), end: steps, minLr: 1e-5 }),
});
