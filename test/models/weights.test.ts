import { describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import {
  autoModel,
  BertForMaskedLM,
  BertForSequenceClassification,
  GPT2LMHeadModel,
  GPT2Model,
  loadWeights,
  matchWeights,
  type NamedState,
  pretrained,
  RobertaForTokenClassification,
  type StateEntry,
  type Task,
  taskOf,
  type WeightSource,
  weightBytes,
} from "../../src/library/models/index.ts";

const model = new GPT2LMHeadModel({ vocab_size: 8, n_positions: 4, n_embd: 4, n_layer: 1, n_head: 2 });

/** The entries of a complete file of this model, their names changed by `rename`. */
function entriesOf(rename = (name: string) => name): Map<string, StateEntry> {
  return new Map(
    [...model.namedParameters()].map(([name, { shape }]) => [rename(name), { dtype: "F32", shape }]),
  );
}

describe("weights of a model folder", () => {
  test("are found by their names, one for each parameter, in the model's order", () => {
    const matches = matchWeights(model, entriesOf());
    expect(matches.map(({ name, entry }) => [name, entry])).toEqual(
      [...model.namedParameters().keys()].map((name) => [name, name]),
    );
  });

  test("are found with and without the prefix, by the model with a head and without", () => {
    const bare = entriesOf((name) => name.replace("transformer.", ""));
    expect(matchWeights(model, bare)[0]).toMatchObject({
      name: "transformer.wte.weight",
      entry: "wte.weight",
    });
    const headless = new GPT2Model(model.config);
    expect(matchWeights(headless, entriesOf())[0]).toMatchObject({
      name: "wte.weight",
      entry: "transformer.wte.weight",
    });
    expect(matchWeights(headless, bare)).toHaveLength(model.namedParameters().size);
  });

  test("may stand beside the buffers of old files and a copy of the tied output layer", () => {
    const entries = entriesOf();
    entries.set("transformer.h.0.attn.bias", { dtype: "U8", shape: [1, 1, 4, 4] });
    entries.set("h.0.attn.masked_bias", { dtype: "F32", shape: [] });
    entries.set("lm_head.weight", { dtype: "F32", shape: [8, 4] });
    expect(matchWeights(model, entries)).toHaveLength(model.namedParameters().size);
  });

  test("must hold the output layer where it is not tied", () => {
    const untied = new GPT2LMHeadModel({ ...model.config, tie_word_embeddings: false });
    expect(() => matchWeights(untied, entriesOf())).toThrow("1 missing (lm_head.weight)");
  });

  test("are refused with every name that is missing, unexpected or of another shape", () => {
    const entries = entriesOf();
    entries.delete("transformer.wpe.weight");
    entries.set("transformer.wte.weight", { dtype: "F32", shape: [9, 4] });
    entries.set("transformer.h.1.ln_1.weight", { dtype: "F32", shape: [4] });
    entries.set("wte.weight", { dtype: "F32", shape: [8, 4] });
    expect(() => matchWeights(model, entries)).toThrow(
      expect.objectContaining({
        code: "MODEL_WEIGHTS",
        fields: {
          missing: ["transformer.wpe.weight"],
          unexpected: ["wte.weight", "transformer.h.1.ln_1.weight"],
          mismatched: ["transformer.wte.weight [8,4]: [9,4]"],
        },
      }),
    );
  });

  test("are copied into the parameters, whatever float they are", async () => {
    materialize(model, { seed: 1 });
    const half = { F32: [0, 0, 0, 63], BF16: [0, 63], F16: [0, 56], F64: [0, 0, 0, 0, 0, 0, 224, 63] };
    for (const [dtype, item] of Object.entries(half)) {
      const source: WeightSource = {
        names: [...entriesOf().keys()],
        entry: (name) => ({ ...(entriesOf().get(name) as StateEntry), dtype }),
        read: async (name) => Uint8Array.from(Array(numelOf(name)).fill(item).flat()),
      };
      await loadWeights(model, source);
      for (const { tensor } of model.parameters()) {
        expect(new Set(tensor.toTypedArray() as Float32Array)).toEqual(new Set([0.5]));
        expect(tensor).toMatchObject({ dtype: "float32", requiresGrad: true });
        tensor.copyFrom(new Float32Array(tensor.numel));
      }
    }
    dematerialize(model);
  });

  test("are refused where they are no floats, before any is read", async () => {
    const source: WeightSource = {
      names: [...entriesOf().keys()],
      entry: (name) => ({
        ...(entriesOf().get(name) as StateEntry),
        dtype: name.includes("wpe") ? "I64" : "F32",
      }),
      read: async () => expect.unreachable(),
    };
    await expect(loadWeights(model, source)).rejects.toMatchObject({ code: "MODEL_WEIGHTS" });
  });

  test("go out as they came in", async () => {
    materialize(model, { seed: 1 });
    const other = new GPT2LMHeadModel(model.config);
    materialize(other, { seed: 2 });
    const written = new Map(weightBytes(model).map((weight) => [weight.name, weight]));
    await loadWeights(other, {
      names: [...written.keys()],
      entry: (name) => written.get(name) as StateEntry,
      read: async (name) => written.get(name)?.read() ?? new Uint8Array(),
    });
    const values = (from: GPT2LMHeadModel) => from.parameters().map(({ tensor }) => tensor.toTypedArray());
    expect(values(other)).toEqual(values(model));
    dematerialize(other);
    dematerialize(model);
  });
});

describe("weights of a pretrained folder", () => {
  const sizes = {
    vocab_size: 8,
    hidden_size: 4,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    intermediate_size: 6,
  };
  const bert = { ...sizes, max_position_embeddings: 4 };
  const filled = new BertForMaskedLM(bert);
  const classifier = new BertForSequenceClassification({ ...bert, num_labels: 3 });
  const entriesIn = (of: NamedState) =>
    new Map([...of.namedState()].map(([name, { shape }]) => [name, { dtype: "F32", shape }]));

  test("give a model with another head all but the head, which is drawn, and leave out theirs", () => {
    const { matched, fresh, dropped } = pretrained(classifier, entriesIn(filled));
    expect(fresh).toEqual([
      "bert.pooler.dense.weight",
      "bert.pooler.dense.bias",
      "classifier.weight",
      "classifier.bias",
    ]);
    expect(dropped.every((name) => name.startsWith("cls.")) && dropped.length).toBe(5);
    expect(matched).toHaveLength(classifier.namedState().size - fresh.length);
  });

  test("draw the outputs of a head with another number of labels", () => {
    const two = new BertForSequenceClassification({ ...bert, num_labels: 2 });
    const { fresh, dropped } = pretrained(classifier, entriesIn(two));
    expect(fresh).toEqual(["classifier.weight", "classifier.bias"]);
    expect(dropped).toEqual(fresh);
  });

  test("are found without the prefix, as of a folder of the stack alone, and by their old names", () => {
    const old = (name: string) =>
      name
        .replace(/^bert\./, "")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta");
    const stack = [...entriesIn(classifier)].filter(([name]) => name.startsWith("bert."));
    const { fresh, dropped } = pretrained(
      classifier,
      new Map(stack.map(([name, entry]) => [old(name), entry])),
    );
    expect([fresh, dropped]).toEqual([["classifier.weight", "classifier.bias"], []]);
  });

  test("are refused where anything outside the head is missing, left over or of another shape", () => {
    const entries = entriesIn(filled);
    entries.delete("bert.encoder.layer.0.output.dense.weight");
    entries.set("bert.encoder.layer.1.output.dense.weight", { dtype: "F32", shape: [4, 6] });
    entries.set("bert.embeddings.word_embeddings.weight", { dtype: "F32", shape: [9, 4] });
    expect(() => pretrained(classifier, entries)).toThrow(
      expect.objectContaining({
        code: "MODEL_WEIGHTS",
        fields: {
          missing: ["bert.encoder.layer.0.output.dense.weight"],
          unexpected: ["bert.encoder.layer.1.output.dense.weight"],
          mismatched: ["bert.embeddings.word_embeddings.weight [8,4]: [9,4]"],
        },
      }),
    );
  });

  test("are refused without an output layer that a language model's own is not tied to", () => {
    const untied = new GPT2LMHeadModel({ ...model.config, tie_word_embeddings: false });
    expect(() => pretrained(untied, entriesOf())).toThrow("1 missing (lm_head.weight)");
  });
});

describe("autoModel", () => {
  const sizes = { hidden_size: 4, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 6 };

  test("names the class that a config.json and a task ask for", () => {
    const config = { model_type: "roberta", architectures: ["RobertaForTokenClassification"], ...sizes };
    expect(taskOf(config)).toBe("token_classification");
    expect(autoModel("token_classification", config)).toBeInstanceOf(RobertaForTokenClassification);
  });

  test("suggests the nearest name for an unknown family or task", () => {
    expect(() => autoModel("masked_lm", { model_type: "robeta" })).toThrow("did you mean roberta?");
    expect(() => autoModel("token_clasification" as Task, { model_type: "bert" })).toThrow(
      "did you mean token_classification?",
    );
    expect(() => autoModel("causal_lm", { model_type: "vit" })).toThrow(
      expect.objectContaining({ code: "MODEL_TASK" }),
    );
  });

  test("refuses fields that ask for what the model lacks", () => {
    const expectRefused = (config: object, field: string) =>
      expect(() => autoModel("masked_lm", { model_type: "bert", ...sizes, ...config })).toThrow(
        expect.objectContaining({ code: "MODEL_CONFIG", fields: expect.objectContaining({ field }) }),
      );
    expectRefused({ is_decoder: true }, "is_decoder");
    expectRefused({ position_embedding_type: "relative_key" }, "position_embedding_type");
    expectRefused({ hidden_size: 5 }, "hidden_size");
    expectRefused({ hidden_act: "prelu" }, "hidden_act");
  });
});

function numelOf(name: string): number {
  return model.namedParameters().get(name)?.numel ?? 0;
}
