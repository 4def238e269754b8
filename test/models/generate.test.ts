import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { liveTensors, noGrad, ops, scope, tensor } from "../../src/compute/tensor/index.ts";
import { generate, generateTexts } from "../../src/library/models/generation/index.ts";
import {
  BartForConditionalGeneration,
  GPT2LMHeadModel,
  LlamaForCausalLM,
} from "../../src/library/models/index.ts";

describe("text generation", () => {
  const model = new GPT2LMHeadModel({ vocab_size: 32, n_positions: 8, n_embd: 12, n_layer: 2, n_head: 3 });
  beforeAll(() => materialize(model, { seed: 1 }));
  afterAll(() => dematerialize(model));

  test("takes the most likely token at temperature zero, sliding its window over a long text", () => {
    const text = generate(model, [1, 2, 3], { maxNewTokens: 12, temperature: 0 });
    expect(text).toHaveLength(15);
    const window = text.slice(6, 14);
    const logits = noGrad(() =>
      scope(
        () =>
          model
            .eval()
            .forward(tensor([window], { dtype: "int64" }))
            .logits.toTypedArray() as Float32Array,
      ),
    ).slice(-32);
    expect(text[14]).toBe(logits.indexOf(Math.max(...logits)));
  });

  test("writes the same text for the same seed, and another for another", () => {
    const write = (seed: number) => generate(model, [1], { maxNewTokens: 20, seed });
    expect(write(3)).toEqual(write(3));
    expect(write(3)).not.toEqual(write(4));
    expect(generate(model, [1], { maxNewTokens: 5, seed: 3 })).toEqual(write(3).slice(0, 6));
  });

  test("leaves no tensor behind and the model in the mode it had", () => {
    model.train();
    const before = liveTensors();
    generate(model, [1], { maxNewTokens: 10, topK: 4 });
    expect(liveTensors()).toBe(before);
    expect(model.transformer.h.at(0)?.training).toBe(true);
  });

  test("draws each token as often as its probability says, and none outside the k most likely", () => {
    const logits = tensor([0, Math.log(3), -1, Math.log(4)])
      .expand([800, 4])
      .contiguous();
    const uniforms = tensor(Array.from({ length: 800 }, (_, trial) => (trial + 0.5) / 800));
    const countsOf = (temperature: number, topK: number, topP: number) => {
      const counts = [0, 0, 0, 0];
      for (const token of ops.troupe.drawTokens(logits, uniforms, temperature, topK, topP).toTypedArray())
        counts[Number(token)] = (counts[Number(token)] ?? 0) + 1;
      return counts;
    };
    expect(countsOf(1, 3, 1)).toEqual([100, 300, 0, 400]);
    expect(countsOf(1, 0, 0.8)).toEqual([0, 343, 0, 457]);
    expect(countsOf(0.01, 4, 1)).toEqual([0, 0, 0, 800]);
  });

  test.each([
    ["an empty prompt", [], { maxNewTokens: 1 }],
    ["a negative temperature", [1], { maxNewTokens: 1, temperature: -1 }],
    ["a negative length", [1], { maxNewTokens: -1 }],
    ["a top of none", [1], { maxNewTokens: 1, topK: 0 }],
    ["a seed that is no whole number", [1], { maxNewTokens: 1, seed: 0.5 }],
    ["a stop token outside of a list", [1], { maxNewTokens: 1, stopTokens: 5 as never }],
    ["stop texts without a tokenizer", [1], { maxNewTokens: 1, stopTexts: ["."] }],
  ])("refuses %s", (_, prompt, options) => {
    expect(() => generate(model, prompt, options)).toThrow(
      expect.objectContaining({ code: "GENERATE_OPTION" }),
    );
  });
});

const llama = {
  ...{ vocab_size: 32, hidden_size: 12, intermediate_size: 20, num_hidden_layers: 1, num_attention_heads: 2 },
};
const bart = {
  ...{ vocab_size: 32, d_model: 12, encoder_layers: 1, decoder_layers: 1, max_position_embeddings: 16 },
  ...{ encoder_attention_heads: 2, decoder_attention_heads: 2, encoder_ffn_dim: 8, decoder_ffn_dim: 8 },
};

describe.each([
  ["LLaMA", (tokens: object) => new LlamaForCausalLM({ ...llama, ...tokens })],
  ["BART", (tokens: object) => new BartForConditionalGeneration({ ...bart, ...tokens })],
])("a %s given its special tokens", (_, build) => {
  const write = (tokens: object) => {
    using models = new DisposableStack();
    const model = models.adopt(build(tokens), dematerialize);
    materialize(model, { seed: 1 });
    return generateTexts(model, [[1, 2]], { maxNewTokens: 4, temperature: 0 })[0]?.tokens ?? [];
  };

  test("ends its texts at the token that ends one, or at any of several", () => {
    const [first] = write({});
    expect(write({})).toHaveLength(4);
    expect(write({ eos_token_id: first })).toEqual([first]);
    expect(write({ eos_token_id: [31, first] })).toEqual([first]);
  });

  test("says them in its config.json, except those that its vocabulary lacks", () => {
    const { configJson } = build({ bos_token_id: 0, eos_token_id: 3, cls_token_id: 32 });
    expect(configJson).toMatchObject({ bos_token_id: 0, eos_token_id: 3 });
    expect(configJson).not.toHaveProperty("cls_token_id");
  });
});
