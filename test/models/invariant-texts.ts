import { expect } from "vitest";
import { evaluating, type Module } from "../../src/compute/nn/index.ts";
import { tokenLogProbs } from "../../src/compute/objectives/index.ts";
import { scope, tensor } from "../../src/compute/tensor/index.ts";
import {
  type GeneratedText,
  GPT2LMHeadModel,
  GPTNeoXForCausalLM,
  LlamaForCausalLM,
  OPTForCausalLM,
} from "../../src/library/models/index.ts";

const sizes = { vocab_size: 64, hidden_size: 48, num_hidden_layers: 2, max_position_embeddings: 160 };
const shared = { num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12, intermediate_size: 72 };

/** Makes a model of each kind of norm, activation, position and attention that an invariant forward may have. */
export const families: Readonly<Record<string, () => Module>> = {
  "GPT-2": () => new GPT2LMHeadModel({ vocab_size: 64, n_positions: 160, n_embd: 48, n_layer: 2, n_head: 3 }),
  LLaMA: () => new LlamaForCausalLM({ model_type: "llama", ...sizes, ...shared }),
  Mistral: () => new LlamaForCausalLM({ model_type: "mistral", ...sizes, ...shared, sliding_window: 11 }),
  OPT: () =>
    new OPTForCausalLM({
      ...sizes,
      word_embed_proj_dim: 48,
      num_attention_heads: 4,
      ffn_dim: 96,
      dropout: 0,
    }),
  "GPT-NeoX": () =>
    new GPTNeoXForCausalLM({ ...sizes, num_attention_heads: 3, intermediate_size: 96, hidden_dropout: 0 }),
};

export const prompts = [5, 1, 17, 8, 30, 16].map((length, row) =>
  Array.from({ length }, (_, place) => (7 * place + 11 * row + 3) % 64),
);

/** The log-probabilities of what was written, by a recorded forward: over rows padded to one length, or packed into one row. */
export function logProbsByTrainer(
  model: GPT2LMHeadModel,
  rows: readonly GeneratedText[],
  isPacked = false,
): readonly (readonly number[])[] {
  return evaluating(model, () =>
    scope(() => {
      const sequences = rows.map(({ sequence }) => sequence);
      const longest = Math.max(...sequences.map(({ length }) => length));
      const padded = (row: readonly number[]) => [...row, ...new Array<number>(longest - row.length).fill(0)];
      const integers = (values: readonly (readonly number[])[]) => tensor(values, { dtype: "int64" });
      const ids = integers(isPacked ? [sequences.flat()] : sequences.map(padded));
      const ends = sequences.map((_, row) => sequences.slice(0, row + 1).flat().length);
      const { logits } = isPacked
        ? model.forward(ids, { segments: tensor([0, ...ends], { dtype: "int64" }) })
        : model.forward(ids, { attentionMask: integers(sequences.map((row) => padded(row.map(() => 1)))) });
      const count = (ids.shape[1] ?? 0) - 1;
      const logProbs = tokenLogProbs(logits.narrow(1, 0, count), ids.narrow(1, 1, count));
      expect(logProbs.requiresGrad).toBe(true);
      const found = logProbs.detach();
      return rows.map(({ sequence, tokens }, row) => {
        const last = (isPacked ? (ends[row] ?? 0) : sequence.length) - 1;
        const own = found.select(0, isPacked ? 0 : row).narrow(0, last - tokens.length, tokens.length);
        return [...(own.toTypedArray() as Float32Array)];
      });
    }),
  );
}

/** The log-probabilities that the texts came with. */
export const drawn = (rows: readonly GeneratedText[]): readonly (readonly number[])[] =>
  rows.map(({ logProbs }) => [...logProbs]);
