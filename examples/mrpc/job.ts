// BERT learns whether two sentences say the same: the Microsoft Research Paraphrase Corpus.
import {
  AdamW,
  defineJob,
  loadTokenizer,
  readModelConfig,
  sequenceClassification as task,
  taskModel,
} from "troupe";

export default defineJob({
  // `data`: the corpus's two files; `model`: a Hugging Face folder of BERT, RoBERTa or ALBERT, with its tokenizer.
  config: { data: "mrpc", model: "bert-base-uncased", epochs: 3, batch: 32, lr: 3e-5, length: 128 },
  data: async ({ data, model, length }, { seed }) =>
    task.dataset(await task.read(data), {
      source: data,
      config: readModelConfig(model),
      tokenizer: await loadTokenizer(model),
      length,
      seed,
    }),
  training: ({ epochs, batch, model }, { numTrain }) => ({
    epochs,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: Math.ceil(numTrain / batch),
    pretrained: model,
  }),
  model: ({ model }, facts) => taskModel(task, readModelConfig(model), facts),
  loss: task.loss,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr }),
});
