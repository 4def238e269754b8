// Texts are written in pages on a device too.
import { afterEach, expect, it, vi } from "vitest";
import { dematerialize, type Module, materialize, Pages } from "../../src/compute/nn/index.ts";
import { liveTensors, onDevice } from "../../src/compute/tensor/index.ts";
import {
  type GenerateOptions,
  GPT2LMHeadModel,
  generateTexts,
  type LanguageModel,
  LlamaForCausalLM,
} from "../../src/library/models/index.ts";

const families = {
  "GPT-2": () => new GPT2LMHeadModel({ vocab_size: 64, n_positions: 40, n_embd: 48, n_layer: 2, n_head: 3 }),
  Mistral: () =>
    new LlamaForCausalLM({
      ...{ model_type: "mistral", vocab_size: 64, hidden_size: 48, intermediate_size: 72 },
      ...{ num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12 },
      ...{ max_position_embeddings: 160, sliding_window: 11 },
    }),
};

const prompts = [5, 1, 17, 8, 30].map((length, row) =>
  Array.from({ length }, (_, place) => (7 * place + 11 * row + 3) % 64),
);

const options: Record<string, GenerateOptions> = {
  samples: { maxNewTokens: 14, samples: 3, slots: 4, seed: 7, temperature: 0.9, topK: 40, topP: 0.9 },
  beams: { maxNewTokens: 8, numBeams: 3, stopTokens: [5, 9] },
};

afterEach(() => {
  vi.restoreAllMocks();
});

it.each(
  Object.keys(families).flatMap((family) =>
    Object.keys(options).flatMap((kind) =>
      (["float32", "bfloat16"] as const).map((dtype) => [family, kind, dtype] as const),
    ),
  ),
)("%s writes %s in %s on the pretend device as on the CPU, to the bit", (family, kind, dtype) => {
  const passes = vi.spyOn(Pages.prototype, "pass");
  const write = () => {
    const model = families[family as keyof typeof families]() as Module & LanguageModel;
    materialize(model, { seed: 5, dtype });
    try {
      const before = liveTensors();
      const texts = generateTexts(model, prompts, options[kind] as GenerateOptions);
      expect(liveTensors()).toBe(before);
      return texts;
    } finally {
      dematerialize(model);
    }
  };
  const texts = onDevice("sim:0", write);
  expect(passes).toHaveBeenCalled();
  expect(texts).toEqual(write());
});
