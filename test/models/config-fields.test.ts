import { describe, expect, it } from "vitest";
import {
  autoModel,
  BertForMaskedLM,
  CLIPModel,
  configOfFile,
  GPT2LMHeadModel,
  GPT2MoELMHeadModel,
  LlamaForCausalLM,
  T5ForConditionalGeneration,
  ViTForImageClassification,
} from "../../src/library/models/index.ts";

describe("a field that no model of the family has", () => {
  it.each<[string, () => unknown, string]>([
    ["GPT-2's", () => new GPT2LMHeadModel({ n_layers: 2 } as object), "n_layers (did you mean n_layer?)"],
    [
      "a named family's",
      () => autoModel("causal_lm", { model_type: "gpt2", n_layers: 2 }),
      "n_layers (did you mean n_layer?)",
    ],
    ["BERT's", () => new BertForMaskedLM({ num_layers: 2 }), "num_layers ("],
    ["LLaMA's", () => new LlamaForCausalLM({ rope_tetha: 1 }), "rope_tetha (did you mean rope_theta?)"],
    ["T5's", () => new T5ForConditionalGeneration({ dmodel: 8 }), "dmodel (did you mean d_model?)"],
    ["ViT's", () => new ViTForImageClassification({ imagesize: 8 }), "imagesize (did you mean image_size?)"],
    [
      "a tower's",
      () => new CLIPModel({ text_config: { hidden_sise: 8 } }),
      "hidden_sise (did you mean hidden_size?)",
    ],
  ])("is refused of %s, with the one that was meant", (_whose, make, got) => {
    expect(make).toThrow(
      expect.objectContaining({
        code: "MODEL_CONFIG",
        message: expect.stringContaining(`expected a field of the model, got ${got}`),
      }),
    );
  });

  it("is passed over in a file of transformers, which says much that nothing is computed by", () => {
    const file = { architectures: ["GPT2LMHeadModel"], n_layer: 1, n_ctx: 1024, task_specific_params: {} };
    expect(new GPT2LMHeadModel(file as object).config.n_layer).toBe(1);
  });

  it("unknown fields of a config file are ignored, also when the file is spread into another config or nested in it", () => {
    const file = configOfFile({ n_layer: 2, n_ctx: 1024 });
    expect(new GPT2LMHeadModel(file as object).config.n_layer).toBe(2);
    expect(new GPT2LMHeadModel({ ...file, n_layer: 1 } as object).config.n_layer).toBe(1);
    expect(JSON.parse(JSON.stringify(file))).toEqual({ n_layer: 2, n_ctx: 1024 });
    const towers = configOfFile({ text_config: { torch_dtype: "float32" }, vision_config: { dropout: 0 } });
    expect(new CLIPModel(towers).config.text_config.vocab_size).toBe(49408);
  });

  it("is refused of experts and their mixtures", () => {
    const experts = { numExpert: 4 } as object as { numExperts: number };
    expect(() => new GPT2MoELMHeadModel({}, experts)).toThrow("numExpert (did you mean numExperts?)");
    const mixture = { capacity_factor: 1 } as object;
    expect(() => new GPT2MoELMHeadModel({ n_layer: 1 }, { numExperts: 4, mixture })).toThrow(
      "[MixtureOfExperts] expected an option, got capacity_factor (did you mean capacityFactor?)",
    );
  });
});

describe("the number of labels", () => {
  const shape = { hidden_size: 8, num_attention_heads: 2, num_hidden_layers: 1, intermediate_size: 8 };
  const two = { ...shape, image_size: 8, patch_size: 4, id2label: { 0: "no", 1: "yes" } };
  const labelsOf = (fields: Readonly<Record<string, unknown>>) =>
    Object.values(new ViTForImageClassification(fields).config.id2label);

  it("takes the place of a file's labels where it is another, and leaves them where it is theirs", () => {
    expect(labelsOf({ ...configOfFile(two), num_labels: 3 })).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
    expect(labelsOf({ ...configOfFile(two), num_labels: 2 })).toEqual(["no", "yes"]);
  });

  it("is refused of a job that names another number of them", () => {
    expect(() => labelsOf({ ...two, num_labels: 3 })).toThrow(
      "expected num_labels to be 2, as many as id2label names, got 3",
    );
  });
});
