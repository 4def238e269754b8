import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { dematerialize, type Module, materialize } from "../../src/compute/nn/index.ts";
import { tensorParallel } from "../../src/compute/parallel/index.ts";
import { arange, noGrad, ops, scope } from "../../src/compute/tensor/index.ts";
import {
  type AdapterOptions,
  adapter,
  adapterConfig,
  applyDelta,
  bitFit,
  type Delta,
  deltaFrom,
  deltaOf,
  ia3,
  loadDelta,
  mergeDelta,
  peftName,
  prefix,
  saveDelta,
  softPrompt,
  tunedState,
} from "../../src/library/deltas/index.ts";
import {
  autoModel,
  BartForConditionalGeneration,
  BertForMaskedLM,
  type GPT2Block,
  GPT2LMHeadModel,
  T5ForConditionalGeneration,
} from "../../src/library/models/index.ts";

const t5 = { vocab_size: 40, d_model: 16, d_kv: 8, d_ff: 24, num_layers: 1, num_heads: 2 };
const bert = {
  vocab_size: 40,
  hidden_size: 16,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 24,
};
const gpt2 = { vocab_size: 61, n_layer: 2, n_head: 2, n_embd: 16, n_positions: 16 };
const directory = mkdtempSync(join(tmpdir(), "troupe-deltas-"));
afterAll(() => rmSync(directory, { recursive: true }));

const logitsOf = (model: GPT2LMHeadModel): Float32Array =>
  noGrad(() =>
    scope(() => {
      const { logits } = model.forward(arange(12, { dtype: "int64" }).view([1, 12]));
      return logits.toTypedArray().slice() as Float32Array;
    }),
  );

function shake(model: Module): void {
  for (const { tensor, numel, shape } of tunedState(model).values())
    noGrad(() =>
      scope(() => void tensor.add_(ops.sin(arange(numel, { dtype: "float32" })).view([...shape]), 0.1)),
    );
}

/** Another model, with a delta that has read what the given one saved. */
async function savedAndRead(model: GPT2LMHeadModel, name: string): Promise<GPT2LMHeadModel> {
  const path = join(directory, name);
  await saveDelta(path, model);
  const again = applyDelta(new GPT2LMHeadModel(gpt2).eval(), deltaFrom(path));
  materialize(again, { seed: 1 });
  shake(again); // what it draws is not what it reads
  await loadDelta(path, again);
  return again;
}

const relativeError = (got: Float32Array, expected: Float32Array) =>
  Math.max(...got.map((value, index) => Math.abs(value - (expected[index] ?? Number.NaN)))) /
  Math.max(...expected.map(Math.abs));

const mapsOf = (model: Module) => [
  ...new Set(
    [...tunedState(model).keys()]
      .filter((name) => name.includes("adapter"))
      .map((name) => name.split(".adapter.")[0]),
  ),
];

describe("adapters", () => {
  it("stand behind both halves of each layer, or behind feed-forward halves, whatever the family", () => {
    const encoder = { hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 24 };
    const place = (type: string, task: "masked_lm" | "causal_lm", fields: object, options: AdapterOptions) =>
      mapsOf(applyDelta(autoModel(task, { model_type: type, vocab_size: 40, ...fields }), adapter(options)));
    expect(place("bert", "masked_lm", encoder, {})).toEqual([
      "bert.encoder.layer.0.attention.output.dense",
      "bert.encoder.layer.0.output.dense",
    ]);
    expect(place("llama", "causal_lm", encoder, { kind: "pfeiffer" })).toEqual([
      "model.layers.0.mlp.down_proj",
    ]);
    expect(mapsOf(applyDelta(new T5ForConditionalGeneration(t5), adapter()))).toHaveLength(5);
  });

  it("change nothing until they are trained, and are saved and read to the bit", async () => {
    const model = new GPT2LMHeadModel(gpt2).eval();
    materialize(model, { seed: 1 });
    const before = logitsOf(model);
    dematerialize(model);
    applyDelta(model, adapter({ width: 3, activation: "relu" }));
    materialize(model, { seed: 1 });
    expect(logitsOf(model)).toEqual(before);
    shake(model);
    expect(logitsOf(model)).not.toEqual(before);
    const again = await savedAndRead(model, "adapter");
    expect(logitsOf(again)).toEqual(logitsOf(model));
    expect(() => mergeDelta(model)).toThrow(expect.objectContaining({ code: "DELTA_TARGET" }));
    dematerialize(model);
    dematerialize(again);
  });

  it("are refused behind a map of whose outputs each rank makes some", () => {
    const model = applyDelta(new GPT2LMHeadModel(gpt2), adapter({ target: ["c_attn"] }));
    const group = { size: 2, rank: 0, number: 0 } as Parameters<typeof tensorParallel>[2];
    expect(() => tensorParallel(model, model.tensorPlan, group)).toThrow(
      expect.objectContaining({ code: "TENSOR_PLAN" }),
    );
  });
});

describe("a soft prompt", () => {
  it("stands in front of every row, is trained alone, and is saved and read to the bit", async () => {
    const model = applyDelta(new GPT2LMHeadModel(gpt2).eval(), softPrompt({ numTokens: 3 }));
    materialize(model, { seed: 1 });
    expect([...tunedState(model)].map(([name, { shape }]) => [name, shape])).toEqual([
      ["transformer.wte.prompt.prompt_embeddings", [3, 16]],
    ]);
    const logits = logitsOf(model);
    expect(logits).toHaveLength(15 * 61);
    const again = await savedAndRead(model, "prompt");
    expect(logitsOf(again)).toEqual(logits);
    dematerialize(model);
    dematerialize(again);
  });
});

describe("a prefix", () => {
  it("of a projection is trained by its narrower table, kept so by a run, and saved as the vectors that it makes", async () => {
    const model = applyDelta(new GPT2LMHeadModel(gpt2).eval(), prefix({ numTokens: 3, projection: 5 }));
    materialize(model, { seed: 1 });
    expect([...tunedState(model).keys()].map((name) => peftName(name, model))).toEqual([
      "prompt_encoder.embedding.weight",
      "prompt_encoder.transform.0.weight",
      "prompt_encoder.transform.0.bias",
      "prompt_encoder.transform.2.weight",
      "prompt_encoder.transform.2.bias",
    ]);
    expect(adapterConfig(model, deltaOf(model) as Delta)).toMatchObject({
      prefix_projection: true,
      inference_mode: false,
    });
    const again = await savedAndRead(model, "projected");
    expect([...tunedState(again)].map(([name, { shape }]) => [name, shape])).toEqual([
      ["prompt.prompt_embeddings", [3, 64]],
    ]);
    expect(relativeError(logitsOf(again), logitsOf(model))).toBeLessThan(1e-6); // its rows are made one layer at a time
    dematerialize(model);
    dematerialize(again);
  });

  it("is one table for all layers, trained alone, saved and read to the bit, before positions that there is room for", async () => {
    const model = applyDelta(new GPT2LMHeadModel(gpt2).eval(), prefix({ numTokens: 3 }));
    materialize(model, { seed: 1 });
    expect([...tunedState(model)].map(([name, { shape }]) => [name, shape])).toEqual([
      ["prompt.prompt_embeddings", [3, 64]],
    ]);
    const logits = logitsOf(model);
    expect(logits).toHaveLength(12 * 61);
    const again = await savedAndRead(model, "prefix");
    expect(logitsOf(again)).toEqual(logits);
    dematerialize(model);
    dematerialize(again);
    const crowded = applyDelta(new GPT2LMHeadModel(gpt2).eval(), prefix({ numTokens: 5 }));
    materialize(crowded, { seed: 1 });
    expect(() => logitsOf(crowded)).toThrow(expect.objectContaining({ code: "MODEL_INPUT" }));
    dematerialize(crowded);
  });
});

describe("a prompt that an encoder makes", () => {
  it.each(["MLP", "LSTM"] as const)("by %s is saved as the vectors, and reads as the same", async (kind) => {
    const encoder = { kind, width: 5, numLayers: 1 };
    const model = applyDelta(new GPT2LMHeadModel(gpt2).eval(), softPrompt({ numTokens: 3, encoder }));
    materialize(model, { seed: 1 });
    expect(adapterConfig(model, deltaOf(model) as Delta)).toMatchObject({
      peft_type: "P_TUNING",
      encoder_reparameterization_type: kind,
      inference_mode: false,
    });
    const again = await savedAndRead(model, kind);
    expect([...tunedState(again)].map(([, { shape }]) => shape)).toEqual([[3, 16]]);
    expect(logitsOf(again)).toEqual(logitsOf(model));
    dematerialize(model);
    dematerialize(again);
  });
});

describe("factors of features", () => {
  it("change nothing until they are trained, are saved and read to the bit, and merged and taken out again", async () => {
    const model = new GPT2LMHeadModel(gpt2).eval();
    materialize(model, { seed: 1 });
    const before = logitsOf(model);
    const names = [...model.namedState().keys()];
    dematerialize(model);
    applyDelta(model, ia3());
    materialize(model, { seed: 1 });
    expect(logitsOf(model)).toEqual(before);
    shake(model);
    expect([...tunedState(model)].map(([name, { shape }]) => [name.split(".h.")[1], shape])).toEqual([
      ["0.attn.c_attn.ia3_l", [48, 1]],
      ["0.mlp.c_proj.ia3_l", [1, 64]],
      ["1.attn.c_attn.ia3_l", [48, 1]],
      ["1.mlp.c_proj.ia3_l", [1, 64]],
    ]);
    const apart = logitsOf(model);
    const again = await savedAndRead(model, "factors");
    expect(logitsOf(again)).toEqual(apart);
    dematerialize(again);
    const unmerge = mergeDelta(model);
    expect([...model.namedState().keys()]).toEqual(names);
    expect(relativeError(logitsOf(model), apart)).toBeLessThan(1e-5);
    unmerge();
    expect(relativeError(logitsOf(model), apart)).toBeLessThan(1e-5);
    const { c_attn } = (model.transformer.h[0] as GPT2Block).attn;
    noGrad(() => void c_attn.scale?.factors.tensor.zero_());
    expect(() => mergeDelta(model)).toThrow(expect.objectContaining({ code: "DELTA_TARGET" }));
    expect(c_attn.scale).toBeDefined();
    dematerialize(model);
  });
});

it.each([
  ["a soft prompt", softPrompt, { tie_word_embeddings: false }, BartForConditionalGeneration],
  ["a prefix", prefix, bert, BertForMaskedLM],
] as const)(
  "%s is refused of a model that it cannot stand in front of, and of a length that is none",
  (...each) => {
    const [, delta, fields, Model] = each;
    expect(() => applyDelta(new Model(fields), delta())).toThrow(
      expect.objectContaining({ code: "DELTA_TARGET" }),
    );
    for (const numTokens of [0, 1.5])
      expect(() => delta({ numTokens })).toThrow(expect.objectContaining({ code: "DELTA_OPTION" }));
  },
);

describe("biases", () => {
  it("alone are tuned of a model, and are saved and read to the bit", async () => {
    const model = applyDelta(new GPT2LMHeadModel(gpt2).eval(), bitFit());
    materialize(model, { seed: 1 });
    shake(model);
    expect([...tunedState(model).keys()].every((name) => name.endsWith(".bias"))).toBe(true);
    const again = await savedAndRead(model, "biases");
    expect(logitsOf(again)).toEqual(logitsOf(model));
    dematerialize(model);
    dematerialize(again);
  });
});
