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
    expect(
      mapsOf(
        applyDelta(
          new T5ForConditionalGeneration({
            vocab_size: 40,
            d_model: 16,
            d_kv: 8,
            d_ff: 24,
            num_layers: 1,
            num_heads: 2,
          }),
          adapter(),
        ),
      ),
    ).toHaveLength(5);
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
    await saveDelta(join(directory, "adapter"), model);
    const again = applyDelta(new GPT2LMHeadModel(gpt2).eval(), deltaFrom(join(directory, "adapter")));
    materialize(again, { seed: 1 });
    await loadDelta(join(directory, "adapter"), again);
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
    await saveDelta(join(directory, "prompt"), model);
    const again = applyDelta(new GPT2LMHeadModel(gpt2).eval(), deltaFrom(join(directory, "prompt")));
    materialize(again, { seed: 2 });
    dematerialize(again);
    materialize(again, { seed: 1 });
    await loadDelta(join(directory, "prompt"), again);
    expect(logitsOf(again)).toEqual(logits);
    dematerialize(model);
    dematerialize(again);
  });

  it("is refused where positions are counted, or there are two stacks", () => {
    const t5 = new T5ForConditionalGeneration({
      vocab_size: 40,
      d_model: 16,
      d_kv: 8,
      d_ff: 24,
      num_layers: 1,
      num_heads: 2,
    });
    expect(() => applyDelta(t5, softPrompt())).toThrow(expect.objectContaining({ code: "DELTA_TARGET" }));
    expect(() => softPrompt({ numTokens: 0 })).toThrow(expect.objectContaining({ code: "DELTA_OPTION" }));
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
    await saveDelta(join(directory, "prefix"), model);
    const again = applyDelta(new GPT2LMHeadModel(gpt2).eval(), deltaFrom(join(directory, "prefix")));
    materialize(again, { seed: 1 });
    shake(again);
    expect(logitsOf(again)).not.toEqual(logits);
    await loadDelta(join(directory, "prefix"), again);
    expect(logitsOf(again)).toEqual(logits);
    dematerialize(model);
    dematerialize(again);
    const crowded = applyDelta(new GPT2LMHeadModel(gpt2).eval(), prefix({ numTokens: 5 }));
    materialize(crowded, { seed: 1 });
    expect(() => logitsOf(crowded)).toThrow(expect.objectContaining({ code: "MODEL_INPUT" }));
    dematerialize(crowded);
  });

  it("is refused of a model that it cannot be put in front of", () => {
    const t5 = new T5ForConditionalGeneration({
      vocab_size: 40,
      d_model: 16,
      d_kv: 8,
      d_ff: 24,
      num_layers: 1,
      num_heads: 2,
    });
    expect(() => applyDelta(t5, prefix())).toThrow(expect.objectContaining({ code: "DELTA_TARGET" }));
    expect(() => prefix({ numTokens: 1.5 })).toThrow(expect.objectContaining({ code: "DELTA_OPTION" }));
  });
});

describe("biases", () => {
  it("alone are tuned of a model, and are saved and read to the bit", async () => {
    const model = applyDelta(new GPT2LMHeadModel(gpt2).eval(), bitFit());
    materialize(model, { seed: 1 });
    shake(model);
    expect([...tunedState(model).keys()].every((name) => name.endsWith(".bias"))).toBe(true);
    await saveDelta(join(directory, "biases"), model);
    const again = applyDelta(new GPT2LMHeadModel(gpt2).eval(), deltaFrom(join(directory, "biases")));
    materialize(again, { seed: 1 });
    await loadDelta(join(directory, "biases"), again);
    expect(logitsOf(again)).toEqual(logitsOf(model));
    dematerialize(model);
    dematerialize(again);
  });
});
