import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  type AdapterOptions,
  adapter,
  applyDelta,
  bitFit,
  deltaFrom,
  loadDelta,
  mergeDelta,
  prefix,
  saveDelta,
  softPrompt,
  tunedState,
} from "../../src/deltas/index.ts";
import { autoModel, GPT2LMHeadModel, T5ForConditionalGeneration } from "../../src/models/index.ts";
import { dematerialize, type Module, materialize } from "../../src/nn/index.ts";
import { tensorParallel } from "../../src/parallel/index.ts";
import { arange, noGrad, ops, scope } from "../../src/tensor/index.ts";

const t5 = { vocab_size: 40, d_model: 16, d_kv: 8, d_ff: 24, num_layers: 1, num_heads: 2 };
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

it.each([
  ["a soft prompt", softPrompt],
  ["a prefix", prefix],
] as const)("%s is refused of a model of two stacks, and of a length that is none", (_, delta) => {
  expect(() => applyDelta(new T5ForConditionalGeneration(t5), delta())).toThrow(
    expect.objectContaining({ code: "DELTA_TARGET" }),
  );
  for (const numTokens of [0, 1.5])
    expect(() => delta({ numTokens })).toThrow(expect.objectContaining({ code: "DELTA_OPTION" }));
});

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
