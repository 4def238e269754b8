import { describe, expect, test } from "vitest";
import {
  bindRandomness,
  cutBlocks,
  dematerialize,
  materialize,
  Randomness,
} from "../../src/compute/nn/index.ts";
import { backward, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import {
  autoModel,
  LlamaForCausalLM,
  LlamaModel,
  llamaConfig,
  matchWeights,
} from "../../src/library/models/index.ts";
import { windowOf } from "../../src/library/models/llama/config.ts";
import { scalingOf } from "../../src/library/models/rope-parameters.ts";

const tiny = {
  vocab_size: 32,
  hidden_size: 12,
  intermediate_size: 20,
  num_hidden_layers: 3,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  max_position_embeddings: 16,
};
const llama3 = {
  rope_type: "llama3",
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8,
};

const ids = (rows: number[][]) => tensor(rows, { dtype: "int64" });
const values = (x: Tensor) => Array.from(x.to("float64").toTypedArray() as Float64Array);

describe("the configuration of a LLaMA, a Mistral, a Qwen2", () => {
  test("is LLaMA 7B where nothing is said, each head with its own keys", () => {
    expect(new LlamaForCausalLM().numParameters).toBe(6_738_415_616);
    expect(llamaConfig()).toMatchObject({ num_key_value_heads: 32, head_dim: 128, model_type: "llama" });
  });

  test("reads rotary positions as releases 4 and 5 of transformers write them, and writes both", () => {
    const wanted = { rope_theta: 500000, ...llama3 };
    const given = [
      { rope_theta: 500000, rope_scaling: llama3 },
      { rope_parameters: { rope_theta: 500000, ...llama3 } },
    ];
    for (const fields of given) {
      const { config, configJson } = new LlamaForCausalLM({ ...tiny, ...fields });
      expect(config.rope_parameters).toEqual(wanted);
      expect(scalingOf(config)).toEqual({
        kind: "llama3",
        factor: 8,
        lowTurns: 1,
        highTurns: 4,
        numPositions: 8,
      });
      expect(configJson).toMatchObject({ rope_theta: 500000, rope_scaling: llama3, rope_parameters: wanted });
      expect(llamaConfig(configJson)).toEqual(config);
    }
    const old = llamaConfig({ ...tiny, rope_scaling: { type: "linear", factor: 2 } });
    expect(scalingOf(old)).toEqual({ kind: "linear", factor: 2 });
    expect(scalingOf(llamaConfig({ ...tiny, rope_scaling: null }))).toEqual({ kind: "default" });
  });

  test("gives windows to Mistral's layers, to Qwen2's last ones if it uses them, and to those that are named", () => {
    const windows = (fields: object) => {
      const config = llamaConfig({ ...tiny, ...fields });
      return [0, 1, 2].map((layer) => windowOf(config, layer));
    };
    expect(windows({ model_type: "mistral", sliding_window: 5 })).toEqual([5, 5, 5]);
    expect(windows({ model_type: "mistral", sliding_window: null })).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const qwen2 = { model_type: "qwen2", sliding_window: 4, max_window_layers: 2 };
    expect(windows(qwen2)).toEqual([undefined, undefined, undefined]);
    expect(windows({ ...qwen2, use_sliding_window: true })).toEqual([undefined, undefined, 4]);
    const layer_types = ["sliding_attention", "full_attention", "full_attention"];
    expect(windows({ ...qwen2, use_sliding_window: true, layer_types })).toEqual([4, undefined, undefined]);
  });

  test("adds biases where its family has them", () => {
    const biases = (fields: object) =>
      [
        ...autoModel("causal_lm", { model_type: "llama", ...tiny, ...fields })
          .namedParameters()
          .keys(),
      ]
        .filter((name) => name.startsWith("model.layers.0.") && name.endsWith("bias"))
        .map((name) => name.split(".").at(-2));
    expect(biases({})).toEqual([]);
    expect(biases({ model_type: "mistral" })).toEqual([]);
    expect(biases({ model_type: "qwen2" })).toEqual(["q_proj", "k_proj", "v_proj"]);
    expect(biases({ attention_bias: true })).toEqual(["q_proj", "k_proj", "v_proj", "o_proj"]);
    expect(biases({ mlp_bias: true })).toEqual(["gate_proj", "up_proj", "down_proj"]);
  });

  test.each([
    [
      "groups that do not divide the heads",
      { num_key_value_heads: 2 },
      "a multiple of num_key_value_heads = 2",
    ],
    ["a width that the heads do not divide", { hidden_size: 13 }, "a multiple of num_attention_heads = 3"],
    ["an odd head width", { head_dim: 5 }, "head_dim to be even"],
    ["another family's file", { model_type: "gpt2" }, "model_type to be one of llama, mistral, qwen2"],
    [
      "a scaling that it lacks",
      { rope_scaling: { rope_type: "proportional", factor: 2 } },
      "rope_type to be one of default",
    ],
    ["a scaling without its factor", { rope_scaling: { rope_type: "linear" } }, "factor to be positive"],
    [
      "a divisor for too few pairs",
      { rope_scaling: { rope_type: "longrope", short_factor: [1], long_factor: [1] } },
      "short_factor to be 2 numbers",
    ],
    ["positions that turn a part of a head", { partial_rotary_factor: 0.5 }, "partial_rotary_factor to be 1"],
    [
      "kinds of too few layers",
      { model_type: "qwen2", layer_types: ["full_attention"] },
      "one for each of 3 layers",
    ],
  ])("refuses %s", (_, fields, message) => {
    expect(() => new LlamaForCausalLM({ ...tiny, ...fields })).toThrow(
      expect.objectContaining({ code: "MODEL_CONFIG", message: expect.stringContaining(message) }),
    );
  });
});

describe("a LLaMA", () => {
  test("has Hugging Face's names and shapes, its layers as blocks", () => {
    const model = new LlamaForCausalLM({ ...tiny, head_dim: 6, tie_word_embeddings: true });
    const layer = [
      ["self_attn.q_proj.weight", [18, 12]],
      ["self_attn.k_proj.weight", [6, 12]],
      ["self_attn.v_proj.weight", [6, 12]],
      ["self_attn.o_proj.weight", [12, 18]],
      ["mlp.gate_proj.weight", [20, 12]],
      ["mlp.up_proj.weight", [20, 12]],
      ["mlp.down_proj.weight", [12, 20]],
      ["input_layernorm.weight", [12]],
      ["post_attention_layernorm.weight", [12]],
    ] as const;
    expect([...model.namedParameters()].map(([name, { shape }]) => [name, shape])).toEqual([
      ["model.embed_tokens.weight", [32, 12]],
      ...[0, 1, 2].flatMap((index) => layer.map(([name, shape]) => [`model.layers.${index}.${name}`, shape])),
      ["model.norm.weight", [12]],
    ]);
    expect(cutBlocks(model).blocks.map(({ name }) => name)).toEqual(
      [0, 1, 2].map((index) => `model.layers.${index}`),
    );
  });

  test("takes the files of a model without a head, and passes over old buffers", () => {
    const bare = new LlamaModel(tiny);
    const entries = new Map(
      [...bare.namedState()].map(([name, { shape }]) => [name, { dtype: "F32", shape }] as const),
    );
    entries.set("layers.0.self_attn.rotary_emb.inv_freq", { dtype: "F32", shape: [2] });
    const tied = new LlamaForCausalLM({ ...tiny, tie_word_embeddings: true });
    expect(matchWeights(tied, entries)).toHaveLength(entries.size - 1);
  });

  test("gives the padding token's row no gradient, and sees only its window and no padding", () => {
    scope(() => {
      const model = new LlamaForCausalLM({
        ...tiny,
        model_type: "mistral",
        num_hidden_layers: 1,
        sliding_window: 3,
        pad_token_id: 0,
      });
      bindRandomness(model, new Randomness(1));
      materialize(model, { seed: 1 });
      const attentionMask = ids([[1, 1, 1, 1, 1, 0, 0]]);
      const logits = (row: number[]) =>
        values(model.forward({ inputIds: ids([row]), attentionMask }).logits as Tensor);
      const [before, after] = [logits([1, 2, 3, 4, 5, 0, 0]), logits([9, 2, 3, 4, 5, 7, 7])];
      const position = (all: number[], t: number) => all.slice(t * 32, (t + 1) * 32);
      for (const t of [0, 1, 2]) expect(position(after, t)).not.toEqual(position(before, t));
      for (const t of [3, 4]) expect(position(after, t)).toEqual(position(before, t));
      const { loss } = model.forward({
        inputIds: ids([[1, 0, 3, 4, 5, 0, 0]]),
        attentionMask,
        labels: ids([[1, 2, 3, 4, 5, 6, 7]]),
      });
      backward(loss as Tensor);
      const gradient = model.model.embed_tokens.weight.tensor.grad as Tensor;
      expect(values(gradient.select(0, 0))).toEqual(Array(12).fill(0));
      expect(values(gradient.select(0, 1).abs().sum())[0]).toBeGreaterThan(0);
      dematerialize(model);
    });
  });
});
