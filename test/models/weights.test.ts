import { describe, expect, test } from "vitest";
import {
  GPT2LMHeadModel,
  GPT2Model,
  loadWeights,
  matchWeights,
  type StateEntry,
  type WeightSource,
  weightBytes,
} from "../../src/models/index.ts";
import { dematerialize, materialize } from "../../src/nn/index.ts";

const model = new GPT2LMHeadModel({ vocab_size: 8, n_positions: 4, n_embd: 4, n_layer: 1, n_head: 2 });

/** What a complete file of this model says, its names changed by `rename`. */
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

function numelOf(name: string): number {
  return model.namedParameters().get(name)?.numel ?? 0;
}
