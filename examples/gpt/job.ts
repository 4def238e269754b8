// nanoGPT's published CPU configuration: a GPT of 4 layers that learns the characters of a text.
// https://github.com/karpathy/nanoGPT#quick-start
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AdamW, Cosine, defineJob, GPT2LMHeadModel, generate, textDataset, tokenizerFromSpec } from "troupe";

// Text that every clone has: the TypeScript compiler's declarations.
const compiler = dirname(fileURLToPath(import.meta.resolve("typescript/package.json")));
const declarations = join(compiler, "..", "@typescript", "typescript-*", "lib", "*.d.ts");

export default defineJob({
  config: {
    data: declarations,
    tokenizer: "character",
    layers: 4,
    heads: 4,
    width: 128,
    context: 64,
    batch: 12,
    accumulation: 1,
    steps: 2000,
    lr: 1e-3,
    minLr: 1e-4,
    warmup: 100,
    beta2: 0.99,
    weightDecay: 0.1,
    clipNorm: 1,
    dropout: 0,
    evaluateEvery: 500,
    evaluationSamples: 1200,
    prompt: "\n",
    sampleTokens: 300,
  },
  training: (config) => ({
    steps: config.steps,
    batchSize: config.batch,
    accumulation: config.accumulation,
    clipNorm: config.clipNorm,
    evaluateEverySteps: config.evaluateEvery,
    evaluationSamples: config.evaluationSamples,
  }),
  data: (config, { seed }) =>
    textDataset({ source: config.data, tokenizer: config.tokenizer, length: config.context, seed }),
  model: (config, { vocabSize }) =>
    new GPT2LMHeadModel({
      vocab_size: vocabSize,
      n_layer: config.layers,
      n_head: config.heads,
      n_embd: config.width,
      n_positions: config.context,
      embd_pdrop: config.dropout,
      attn_pdrop: config.dropout,
      resid_pdrop: config.dropout,
    }),
  loss: (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
  optimizer: (parameters, config) =>
    new AdamW(parameters, { lr: config.lr, betas: [0.9, config.beta2], weightDecay: config.weightDecay }),
  schedule: (optimizer, config) =>
    new Cosine(optimizer, { warmup: config.warmup, end: config.steps, minLr: config.minLr }),
  sample: (model, { config, facts, seed }) => {
    const tokenizer = tokenizerFromSpec(facts.tokenizer ?? { kind: "byte" });
    const prompt = [...tokenizer.encode(config.prompt)];
    const options = { maxNewTokens: config.sampleTokens, temperature: 0.8, topK: 200, seed };
    return tokenizer.decode(generate(model, prompt, options));
  },
});
