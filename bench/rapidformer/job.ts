// The job that the tables measure: BERT or GPT on random tokens, the same in every row.

import { unfused } from "../../src/compute/nn/index.ts";
import { AdamW } from "../../src/compute/optim/index.ts";
import { ops, type Tensor } from "../../src/compute/tensor/index.ts";
import { defineJob } from "../../src/job/index.ts";
import type { Dataset } from "../../src/library/data/index.ts";
import {
  BertForPreTraining,
  BertForSequenceClassification,
  GPT2LMHeadModel,
  type ModelBatch,
  type TaskModel,
} from "../../src/library/models/index.ts";
import { type Subject, sizes } from "./dimensions.ts";

const { bert } = sizes.small;

/** Models whose forward uses no fused kernels. */
const composed = new WeakSet<TaskModel>();

type Samples = { readonly inputIds: Tensor; readonly labels: Tensor; readonly nextSentenceLabel: Tensor };

export default defineJob({
  config: {
    subject: "gpt" as string,
    layers: bert.layers,
    width: bert.width,
    heads: bert.heads,
    vocab: bert.vocab,
    length: bert.length,
    batch: bert.batch,
    steps: 13,
    fused: true,
  },
  training: ({ steps, batch }) => ({ steps, batchSize: batch, clipNorm: 1 }),
  data: ({ vocab, length }): Dataset<Samples> => ({
    facts: { source: "tokens at random" },
    splits: { train: { numSamples: Number.POSITIVE_INFINITY } },
    batch: (_split, position, numSamples) => {
      const uniform = ops.zeros([numSamples, length + 1]);
      ops.troupe.philoxUniform_(uniform, 0, vocab, 7, 0, position * (length + 1));
      const drawn = uniform.to("int64"); // [samples, length + 1]
      const inputIds = drawn.narrow(1, 0, length).contiguous();
      return { inputIds, labels: inputIds.clone(), nextSentenceLabel: drawn.select(1, length).remainder(2) };
    },
    countTokens: ({ inputIds }) => inputIds.numel,
  }),
  model: (config) => {
    const model = modelOf(config.subject as Subject, config);
    if (!config.fused) composed.add(model);
    return model;
  },
  loss: (model: TaskModel, batch) => {
    const forward = () => model.forward(asked(model, batch)).loss as Tensor;
    return composed.has(model) ? unfused(forward) : forward();
  },
  optimizer: (parameters) => new AdamW(parameters, { lr: 1e-4, weightDecay: 0.01 }),
});

type ModelSizes = Pick<(typeof sizes)["small"]["gpt"], "layers" | "width" | "heads" | "vocab" | "length">;

/** Declares the model of a table. */
export function modelOf(subject: "gpt", sizes: ModelSizes): GPT2LMHeadModel;
export function modelOf(subject: Subject, sizes: ModelSizes): TaskModel;
export function modelOf(subject: Subject, { layers, width, heads, vocab, length }: ModelSizes): TaskModel {
  if (subject === "gpt") {
    const dropout = { embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0 };
    const numbers = { vocab_size: vocab, n_layer: layers, n_embd: width, n_head: heads, n_positions: length };
    return new GPT2LMHeadModel({ ...numbers, ...dropout });
  }
  const fields = {
    vocab_size: vocab,
    num_hidden_layers: layers,
    hidden_size: width,
    num_attention_heads: heads,
    intermediate_size: 4 * width,
    max_position_embeddings: length,
    hidden_dropout_prob: 0,
    attention_probs_dropout_prob: 0,
  };
  return subject === "bert" ? new BertForPreTraining(fields) : new BertForSequenceClassification(fields);
}

function asked(model: TaskModel, { inputIds, labels, nextSentenceLabel }: Samples): ModelBatch {
  if (model instanceof BertForSequenceClassification) return { inputIds, labels: nextSentenceLabel };
  return model instanceof BertForPreTraining ? { inputIds, labels, nextSentenceLabel } : { inputIds, labels };
}
