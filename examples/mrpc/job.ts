// BERT learns whether two sentences say the same: the Microsoft Research Paraphrase Corpus.
import {
  AdamW,
  defineJob,
  LinearDecay,
  loadTokenizer,
  readModelConfig,
  sequenceClassification as task,
  taskModel,
} from "troupe";

export default defineJob({
  // `data`: the corpus's two files; `model`: a Hugging Face folder of BERT, RoBERTa or ALBERT, with its tokenizer; `fresh`: its
  // weights are left alone and new ones drawn.
  config: {
    data: "mrpc",
    model: "bert-base-uncased",
    fresh: false,
    epochs: 3,
    batch: 32,
    lr: 3e-5,
    length: 128,
  },
  data: async ({ data, model, length }, { seed }) =>
    task.dataset(await task.read(data), {
      source: data,
      config: readModelConfig(model),
      tokenizer: await loadTokenizer(model),
      length,
      seed,
    }),
  training: ({ epochs, batch, model, fresh }, { numTrain }) => ({
    epochs,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: Math.ceil(numTrain / batch),
    ...(!fresh && { pretrained: model }),
  }),
  model: ({ model }, facts) => taskModel(task, readModelConfig(model), facts),
  loss: task.loss,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr }),
  // Up for the first tenth, then down to nothing, as BERT's authors tuned it.
  schedule: (optimizer, { epochs, batch }, { numTrain }) => {
    const steps = epochs * Math.ceil(numTrain / batch);
    return new LinearDecay(optimizer, { warmup: Math.round(steps / 10), end: steps });
  },
});
