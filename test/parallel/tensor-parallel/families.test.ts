import { afterAll, describe, expect, test } from "vitest";
import type { Trial } from "../../fixtures/tensor-parallel/families.ts";
import { type Piece, wholeOf } from "../../fixtures/tensor-parallel/whole.ts";
import { Ranks } from "./ranks.ts";

const ranks = new Ranks<typeof import("../../fixtures/tensor-parallel/families.ts")>(
  new URL("../../fixtures/tensor-parallel/families.ts", import.meta.url),
);
afterAll(() => ranks.stop());

// float32: sums over ranks are made in another order, and matrix products of other widths are blocked otherwise.
const TOLERANCE = 1e-5;

// Deviations of initial weights are large, so that attention is far from even.
const llama = {
  model_type: "llama",
  vocab_size: 61,
  hidden_size: 30,
  intermediate_size: 36,
  num_hidden_layers: 2,
  num_attention_heads: 12,
  head_dim: 6,
  initializer_range: 0.2,
  max_position_embeddings: 32,
};
const qwen2 = {
  ...llama,
  model_type: "qwen2",
  use_sliding_window: true,
  max_window_layers: 1,
  sliding_window: 5,
};
const mistral = { ...llama, model_type: "mistral", sliding_window: 3 };
const biased = { ...llama, attention_bias: true, mlp_bias: true, tie_word_embeddings: true };
const t5 = {
  model_type: "t5",
  vocab_size: 61,
  d_model: 30,
  d_kv: 5,
  d_ff: 36,
  num_layers: 2,
  num_decoder_layers: 3,
  num_heads: 12,
  relative_attention_num_buckets: 8,
  relative_attention_max_distance: 10,
  dropout_rate: 0,
};
const gated = { ...t5, feed_forward_proj: "gated-gelu", tie_word_embeddings: false };

const numNonzero = (values: Float64Array) =>
  values.reduce((count, value) => count + (value === 0 ? 0 : 1), 0);

const largest = (values: Float64Array) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

const common = { sequence: false, lengths: [12, 24], padded: true } as const;
const causal = (config: object, options: Partial<Trial> = {}): Trial => ({
  task: "causal_lm",
  config: config as Trial["config"],
  ...common,
  ...options,
});
const toText = (config: object, options: Partial<Trial> = {}): Trial => ({
  task: "seq2seq_lm",
  config: config as Trial["config"],
  ...common,
  ...options,
});

describe("a model over tensor-parallel ranks is that model on one device, in its loss and every gradient", () => {
  const groups = [1, 2, 3, 4, 6, 12].flatMap((num_key_value_heads) =>
    [2, 3, 4].map((size) => ({
      title: `LLaMA of 12 heads in ${num_key_value_heads} groups on ${size} ranks`,
      size,
      trial: causal({ ...llama, num_key_value_heads }, { sequence: num_key_value_heads % 2 === 1 }),
    })),
  );
  const others = [
    {
      title: "LLaMA with biases, its output layer tied",
      size: 2,
      trial: causal({ ...biased, num_key_value_heads: 3 }),
    },
    { title: "Mistral with a window", size: 2, trial: causal({ ...mistral, num_key_value_heads: 4 }) },
    {
      title: "Qwen2 with biases, and a window in its second layer, shared positions",
      size: 2,
      trial: causal({ ...qwen2, num_key_value_heads: 1 }, { sequence: true }),
    },
    {
      title: "LLaMA with dropout of attention weights",
      size: 3,
      trial: causal({ ...llama, num_key_value_heads: 4, attention_dropout: 0.3 }, { sequence: true }),
    },
    { title: "T5", size: 2, trial: toText(t5) },
    { title: "T5 with shared positions", size: 4, trial: toText(t5, { sequence: true }) },
    { title: "T5 with gates, its output layer untied", size: 3, trial: toText(gated, { padded: false }) },
    {
      title: "T5 with gates and dropout, shared positions",
      size: 2,
      trial: toText({ ...gated, dropout_rate: 0.2 }, { sequence: true }),
    },
  ];

  const odd = { ...llama, num_attention_heads: 6, intermediate_size: 37 };
  const oddGpt2 = {
    model_type: "gpt2",
    vocab_size: 61,
    n_positions: 32,
    n_embd: 30,
    n_head: 5,
    n_layer: 2,
    n_inner: 37,
    attn_pdrop: 0.2,
    initializer_range: 0.2,
  };
  const oddNeoX = {
    model_type: "gpt_neox",
    vocab_size: 61,
    hidden_size: 40,
    num_attention_heads: 5,
    num_hidden_layers: 2,
    intermediate_size: 37,
    max_position_embeddings: 32,
    initializer_range: 0.2,
    attention_dropout: 0.2,
    hidden_dropout: 0.1,
  };
  const oddGptJ = { ...oddGpt2, n_embd: 40, model_type: "gptj", rotary_dim: 4 };
  const oddOpt = {
    model_type: "opt",
    vocab_size: 61,
    hidden_size: 30,
    num_attention_heads: 5,
    num_hidden_layers: 2,
    ffn_dim: 37,
    max_position_embeddings: 32,
    word_embed_proj_dim: 13,
    init_std: 0.2,
    attention_dropout: 0.2,
  };
  const oddT5 = { ...gated, num_heads: 5, d_ff: 37, dropout_rate: 0.2 };
  const encoder = {
    vocab_size: 61,
    hidden_size: 30,
    intermediate_size: 37,
    num_hidden_layers: 2,
    num_attention_heads: 5,
    max_position_embeddings: 32,
    initializer_range: 0.2,
  };
  const bart = {
    model_type: "bart",
    vocab_size: 61,
    d_model: 30,
    encoder_layers: 2,
    decoder_layers: 2,
    encoder_attention_heads: 5,
    decoder_attention_heads: 3,
    encoder_ffn_dim: 37,
    decoder_ffn_dim: 41,
    max_position_embeddings: 32,
    init_std: 0.2,
    activation_dropout: 0.1,
  };
  const { vocab_size: _, max_position_embeddings: __, ...pictured } = encoder;
  // The last layer computes its first position alone with the same dropout, however ranks share the others: 5 positions of a picture, 13 of a text.
  const readFirst = [
    ...["bert", "roberta", "megatron-bert", "albert"].flatMap((model_type) =>
      [2, 3, 4].map((size) => ({
        title: `${model_type}, an answer a row, ${size} ranks`,
        size,
        trial: {
          ...causal(
            { ...encoder, model_type, attention_probs_dropout_prob: 0.1, hidden_dropout_prob: 0.2 },
            { sequence: size !== 3, lengths: [13, 9] },
          ),
          task: "sequence_classification",
        } as const,
      })),
    ),
    ...[2, 4].map((size) => ({
      title: `vit, an answer a row, ${size} ranks`,
      size,
      trial: {
        ...causal(
          {
            ...pictured,
            model_type: "vit",
            image_size: 8,
            patch_size: 4,
            num_channels: 2,
            attention_probs_dropout_prob: 0.1,
            hidden_dropout_prob: 0.2,
          },
          { sequence: true },
        ),
        task: "image_classification",
      } as const,
    })),
  ];
  const uneven = [
    ...["bert", "roberta", "albert"].map((model_type) => ({
      title: `${model_type} of 5 heads and 37 inner features on 2 ranks, 13 positions`,
      size: 2,
      trial: {
        ...causal(
          { ...encoder, model_type, attention_probs_dropout_prob: 0.1 },
          { sequence: true, lengths: [13, 9] },
        ),
        task: "masked_lm",
      } as const,
    })),
    {
      title: "BART of 5 and 3 heads, 37 and 41 inner features on 2 ranks, 13 and 9 positions",
      size: 2,
      trial: toText(bart, { sequence: true, lengths: [13, 9] }),
    },
    ...[2, 3, 4].map((size) => ({
      title: `GPT-2 of 5 heads in one map and 37 inner features on ${size} ranks, 13 and 9 positions`,
      size,
      trial: causal(oddGpt2, { sequence: size !== 3, lengths: [13, 9] }),
    })),
    ...[
      { family: "GPT-NeoX", config: oddNeoX },
      { family: "GPT-NeoX, its halves in turn,", config: { ...oddNeoX, use_parallel_residual: false } },
      { family: "GPT-J", config: oddGptJ },
      { family: "OPT", config: oddOpt },
      { family: "OPT with norms behind", config: { ...oddOpt, do_layer_norm_before: false } },
    ].flatMap(({ family, config }) =>
      [2, 3].map((size) => ({
        title: `${family} of 5 heads and 37 inner features on ${size} ranks, 13 and 9 positions`,
        size,
        trial: causal(config, { sequence: size === 2, lengths: [13, 9] }),
      })),
    ),
    ...[6, 3, 2, 1].flatMap((num_key_value_heads) =>
      [4, 5].map((size) => ({
        title: `LLaMA of 6 heads in ${num_key_value_heads} groups and 37 inner features on ${size} ranks`,
        size,
        trial: causal(
          { ...odd, num_key_value_heads, attention_bias: true, attention_dropout: 0.2 },
          { sequence: size === 4, lengths: [13, 9] },
        ),
      })),
    ),
    ...[2, 3, 4].map((size) => ({
      title: `T5 of 5 heads and 37 inner features on ${size} ranks, 13 and 9 positions`,
      size,
      trial: toText(oddT5, { sequence: size !== 3, lengths: [13, 9] }),
    })),
  ];

  test.each([...groups, ...others, ...readFirst, ...uneven])("$title", async ({ size, trial }) => {
    const [one] = await ranks.run("compute", 1, trial);
    const all = await ranks.run("compute", size, trial);
    if (one === undefined) throw new Error("no answer");
    for (const { loss } of all) expect(Math.abs(loss / one.loss - 1)).toBeLessThan(TOLERANCE);
    const whole = wholeOf(all.map((rank) => rank.gradients));
    const expected = wholeOf([one.gradients]);
    // A key's bias has no gradient but rounding, since softmax does not see what is added to all scores.
    const floor = 1e-2 * Math.max(...[...expected.values()].map(largest));
    for (const [name, values] of expected) {
      const error = largest((whole.get(name) as Float64Array).map((value, at) => value - (values[at] ?? 0)));
      expect(error / Math.max(floor, largest(values)), name).toBeLessThan(TOLERANCE);
    }
    for (const [name, values] of whole) {
      const pieces = all.map((rank) => rank.gradients.get(name) as Piece);
      if (pieces[0]?.split === undefined) continue;
      const numInPieces = pieces.reduce((sum, piece) => sum + numNonzero(piece.values), 0);
      expect(numInPieces, `${name}: padding has no gradient`).toBe(numNonzero(values));
    }
  });
});
