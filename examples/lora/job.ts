// LLaMA learns a text of one's own by LoRA: two narrow matrices beside each projection, the model itself as it was.
import { AdamW, defineJob, loadTokenizer, lora, readModelConfig, causalLm as task, taskModel } from "troupe";

export default defineJob({
  // `data`: a text or a folder of them; `model`: a Hugging Face folder of LLaMA, Mistral or Qwen2, with its tokenizer.
  config: { data: "text.txt", model: "llama", steps: 300, batch: 8, length: 256, rank: 8, lr: 2e-4 },
  data: async ({ data, model, length }, { seed }) =>
    task.dataset(await task.read(data), {
      source: data,
      config: readModelConfig(model),
      tokenizer: await loadTokenizer(model),
      length,
      seed,
    }),
  training: ({ steps, batch, model }) => ({
    steps,
    batchSize: batch,
    clipNorm: 1,
    evaluateEverySteps: 100,
    pretrained: model,
  }),
  model: ({ model }, facts) => taskModel(task, readModelConfig(model), facts),
  delta: ({ rank }) => lora({ rank, alpha: 2 * rank, target: ["q_proj", "v_proj"] }),
  loss: task.loss,
  weigh: task.weigh,
  predict: task.predict,
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr }),
});
