import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { dematerialize, type Module, materialize } from "../../src/compute/nn/index.ts";
import { arange, noGrad, ops, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import {
  applyDelta,
  deltaFrom,
  loadDelta,
  lora,
  mergeDelta,
  saveDelta,
  tunedState,
} from "../../src/library/deltas/index.ts";
import {
  BertForSequenceClassification,
  GPT2LMHeadModel,
  ViTForImageClassification,
} from "../../src/library/models/index.ts";

const gpt2 = { vocab_size: 61, n_layer: 2, n_head: 2, n_embd: 16, n_positions: 12 };
const bert = {
  vocab_size: 40,
  hidden_size: 16,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  intermediate_size: 24,
  num_labels: 3,
};
const directory = mkdtempSync(join(tmpdir(), "troupe-deltas-"));
afterAll(() => rmSync(directory, { recursive: true }));

const logitsOf = (model: GPT2LMHeadModel): Float32Array =>
  noGrad(() =>
    scope(
      () =>
        model
          .forward(arange(12, { dtype: "int64" }).view([1, 12]))
          .logits.toTypedArray()
          .slice() as Float32Array,
    ),
  );

/** Neither half at zero, or nothing would be seen of it. */
function shake(model: Module): void {
  let place = 0;
  for (const parameter of tunedState(model).values()) {
    place += 1;
    noGrad(() =>
      scope(
        () =>
          void parameter.tensor.add_(
            ops.sin(arange(parameter.numel, { dtype: "float32" }).add(place)).view([...parameter.shape]),
            0.1,
          ),
      ),
    );
  }
}

const largest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Math.max(...Array.from(a, (value, index) => Math.abs(value - (b[index] ?? Number.NaN))));

describe("a low-rank delta", () => {
  let model: GPT2LMHeadModel;
  beforeEach(() => {
    model = new GPT2LMHeadModel(gpt2).eval();
  });
  afterEach(() => dematerialize(model));

  it("tunes the layers that are meant, behind the first of several words that a name has", () => {
    const tunedOf = (layersPattern: string | readonly string[]) => {
      const delta = lora({ target: ["c_fc"], layers: [1], layersPattern, modulesToSave: [] });
      return [...tunedState(applyDelta(new GPT2LMHeadModel(gpt2), delta)).keys()];
    };
    const names = tunedOf(["blocks", "h"]);
    expect(names.every((name) => name.includes("h.1.mlp.c_fc.lora_"))).toBe(true);
    expect(names).toHaveLength(2);
    expect(tunedOf("h")).toEqual(names);
    expect(tunedOf([])).toEqual(names);
    expect(() => tunedOf(["blocks"])).toThrow(expect.objectContaining({ code: "DELTA_TARGET" }));
  });

  it("an untrained LoRA leaves names, shapes and results unchanged", () => {
    materialize(model, { seed: 1 });
    const before = logitsOf(model);
    const names = [...model.namedState()].map(([name, { shape }]) => `${name} ${shape}`);
    dematerialize(model);
    applyDelta(model, lora({ target: ["c_attn", "c_proj"], dropout: 0.5 }));
    const own = [...model.namedState()].filter(([, { role }]) => role === "base");
    expect(own.map(([name, { shape }]) => `${name} ${shape}`)).toEqual(names);
    expect(own.every(([, { trainable }]) => !trainable)).toBe(true);
    materialize(model, { seed: 1 });
    expect(logitsOf(model)).toEqual(before);
  });

  it("can be merged into weights of the base's names alone, equal within rounding, and taken out again", () => {
    const names = [...model.namedState().keys()];
    applyDelta(model, lora({ rank: 3, alpha: 9, target: "all-linear", rsLora: true }));
    materialize(model, { seed: 1 });
    shake(model);
    const apart = logitsOf(model);
    const weight = model.transformer.h[0]?.attn.c_attn.weight.tensor as Tensor;
    const own = weight.toTypedArray().slice() as Float32Array;
    const unmerge = mergeDelta(model);
    expect([...model.namedState().keys()]).toEqual(names);
    const merged = logitsOf(model);
    expect(largest(merged, apart)).toBeLessThan(1e-6 * Math.max(...apart.map(Math.abs)) + 1e-6);
    expect(largest(weight.toTypedArray() as Float32Array, own)).toBeGreaterThan(1e-3);
    unmerge();
    expect(largest(weight.toTypedArray() as Float32Array, own)).toBeLessThan(1e-6);
    expect(largest(logitsOf(model), apart)).toBeLessThan(1e-5);
  });

  it("a LoRA delta is saved and read again to the bit, with all its options", async () => {
    const options = {
      rank: 2,
      alpha: 5,
      dropout: 0.1,
      target: /.*attn\.c_(attn|proj)/,
      bias: "lora_only",
      rsLora: true,
    } as const;
    const given = { ...options, alphaPattern: { c_proj: 3 }, rankPattern: { "h.1.attn.c_attn": 4 } };
    applyDelta(model, lora(given));
    materialize(model, { seed: 1 });
    shake(model);
    const folder = join(directory, "saved");
    await saveDelta(folder, model);
    const again = applyDelta(new GPT2LMHeadModel(gpt2).eval(), deltaFrom(folder));
    materialize(again, { seed: 1 });
    expect(logitsOf(again)).not.toEqual(logitsOf(model));
    await loadDelta(folder, again);
    expect(logitsOf(again)).toEqual(logitsOf(model));
    expect([...tunedState(again).keys()].filter((name) => name.endsWith("bias"))).toHaveLength(4);
    dematerialize(again);
    const other = applyDelta(new GPT2LMHeadModel({ ...gpt2, n_layer: 1 }).eval(), deltaFrom(folder));
    materialize(other, { seed: 1 });
    await expect(loadDelta(folder, other)).rejects.toMatchObject({ code: "MODEL_WEIGHTS" });
    dematerialize(other);
  });

  it("has the ranks and alphas of patterns by the model's names and transformers', and says them by transformers'", () => {
    const numRanks = (rankPattern: Readonly<Record<string, number>>) => {
      const vit = { hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 24 };
      const delta = lora({ target: ["query", "value"], rankPattern, alphaPattern: rankPattern });
      const tuned = applyDelta(
        new ViTForImageClassification({ ...vit, image_size: 8, patch_size: 4 }),
        delta,
      );
      const ranks = [...tunedState(tuned)]
        .filter(([name]) => name.includes("lora_A"))
        .map(([, { shape }]) => shape[0]);
      return { ranks, json: delta.configJson(tuned) };
    };
    const names = (value: number) => ({
      "vit.layers.0.attention.q_proj": value,
      "vit.layers.1.attention.q_proj": value,
    });
    for (const pattern of ["query", "q_proj", "attention.q_proj"]) {
      const { ranks, json } = numRanks({ [pattern]: 3 });
      expect(ranks).toEqual([3, 8, 3, 8]);
      expect(json).toMatchObject({ rank_pattern: names(3), alpha_pattern: names(3) });
    }
  });

  it("a delta trains the new head of its task too, without a LoRA map in it", () => {
    const classifier = applyDelta(new BertForSequenceClassification(bert), lora({ target: "all-linear" }));
    const tuned = [...tunedState(classifier)];
    expect(tuned.filter(([, { role }]) => role === "model").map(([name]) => name)).toEqual([
      "classifier.weight",
      "classifier.bias",
    ]);
    expect(tuned.filter(([name]) => name.startsWith("classifier"))).toHaveLength(2);
  });

  it("leaves a base that nothing makes trainable", () => {
    applyDelta(model, lora());
    const { weight } = model.transformer.wte;
    expect(() => Object.assign(weight, { trainable: true })).toThrow(
      expect.objectContaining({ code: "PARAMETER_TRAINABLE" }),
    );
  });

  it.each([
    ["no map of that name", { target: ["q_prj"] }, "DELTA_TARGET", "c_attn"],
    ["what is no affine map", { target: ["ln_1"] }, "DELTA_TARGET", "LayerNorm"],
    ["a rank of 0", { rank: 0 }, "DELTA_OPTION", "rank"],
    ["a dropout of 1", { dropout: 1 }, "DELTA_OPTION", "dropout"],
  ] as const)("refuses %s", (_, options, code, word) => {
    let caught: unknown;
    try {
      applyDelta(model, lora(options));
    } catch (error) {
      caught = error;
    }
    expect(caught).toMatchObject({ code, message: expect.stringContaining(word) });
  });

  it("is not put where one is, nor read of a kind that would compute something else", () => {
    applyDelta(model, lora());
    expect(() => applyDelta(model, lora())).toThrow(expect.objectContaining({ code: "DELTA_TARGET" }));
    expect(() => deltaFrom(directory)).toThrow(expect.objectContaining({ code: "DELTA_FOLDER" }));
    const folder = join(directory, "saved");
    const config = JSON.parse(readFileSync(join(folder, "adapter_config.json"), "utf8"));
    for (const more of [
      ...[{ use_dora: true }, { peft_type: "LOHA" }, { target_modules: "(?P<name>q)" }],
      // They change the base's own weights.
      ...["pissa_niter_4", "olora", "corda", "loftq"].map((init) => ({ init_lora_weights: init })),
    ]) {
      writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ ...config, ...more }));
      expect(() => deltaFrom(folder)).toThrow(expect.objectContaining({ code: "DELTA_FOLDER" }));
    }
  });
});
