import { describe, expect, test } from "vitest";
import {
  Conv1D,
  column,
  Linear,
  Module,
  ModuleList,
  row,
  type TensorPlan,
  vocabulary,
} from "../../../src/compute/nn/index.ts";
import { cutParameters, tensorDivisors } from "../../../src/compute/parallel/index.ts";
import { GPT2LMHeadModel } from "../../../src/library/models/index.ts";

class Layer extends Module {
  readonly up: Linear = new Linear(6, 24);
  readonly down: Conv1D = new Conv1D(24, 6);

  override forward(): never {
    throw new Error("not called");
  }
}

class Model extends Module {
  readonly layers: ModuleList<Layer> = new ModuleList([new Layer(), new Layer()]);

  override forward(): never {
    throw new Error("not called");
  }
}

const plan: TensorPlan = { "layers.*.up": column({ unit: 4 }), "layers.*.down": row({ unit: 4 }) };
const config = { vocab_size: 61, n_positions: 8, n_embd: 32, n_layer: 2, n_head: 4 };
const shapesOf = (model: Module) =>
  new Map([...model.namedParameters()].map(([name, { shape }]) => [name, [...shape]]));

describe("a tensor plan", () => {
  test("cuts what its patterns name, by outputs and by inputs, and nothing else", () => {
    const model = new Model();
    cutParameters(model, plan, { index: 1, count: 3 });
    const shapes = shapesOf(model);
    for (const layer of ["layers.0", "layers.1"]) {
      expect(shapes.get(`${layer}.up.weight`)).toEqual([8, 6]);
      expect(shapes.get(`${layer}.up.bias`)).toEqual([8]);
      expect(shapes.get(`${layer}.down.weight`)).toEqual([8, 6]);
      expect(shapes.get(`${layer}.down.bias`)).toEqual([6]);
    }
  });

  test("the plan of GPT-2 splits a tied output layer once, heads and words, and leaves norms and positions unsplit", () => {
    const model = new GPT2LMHeadModel(config);
    cutParameters(model, model.tensorPlan, { index: 3, count: 4 });
    const shapes = shapesOf(model);
    expect(shapes.get("transformer.wte.weight")).toEqual([16, 32]); // 61 words, the last rank holds padding
    expect(shapes.get("transformer.wpe.weight")).toEqual([8, 32]);
    expect(shapes.get("transformer.h.1.attn.c_attn.weight")).toEqual([32, 24]);
    expect(shapes.get("transformer.h.1.attn.c_attn.bias")).toEqual([24]);
    expect(shapes.get("transformer.h.1.attn.c_proj.weight")).toEqual([8, 32]);
    expect(shapes.get("transformer.h.0.mlp.c_proj.bias")).toEqual([32]);
    expect(shapes.get("transformer.ln_f.weight")).toEqual([32]);
  });

  test("of GPT-2 gives the last ranks fewer heads where the ranks do not divide them", () => {
    const model = new GPT2LMHeadModel(config);
    cutParameters(model, model.tensorPlan, { index: 2, count: 3 });
    const shapes = shapesOf(model);
    expect(shapes.get("transformer.h.1.attn.c_attn.weight")).toEqual([32, 48]); // of 4 heads 2 a rank, the last has none
    expect(shapes.get("transformer.h.1.attn.c_proj.weight")).toEqual([16, 32]);
    expect(shapes.get("transformer.h.0.mlp.c_fc.bias")).toEqual([43]); // of 128
  });

  test("tells what the number of ranks must divide", () => {
    expect(tensorDivisors(new Model(), plan)).toEqual({ "groups of 4 in layers.*.up": 6 });
    const model = new GPT2LMHeadModel(config);
    expect(tensorDivisors(model, model.tensorPlan)).toEqual({}); // the last ranks may hold fewer heads
  });

  test("is refused where it does not divide what stays together", () => {
    const cut = () => cutParameters(new Model(), plan, { index: 0, count: 4 });
    expect(cut).toThrow(expect.objectContaining({ code: "PARAMETER_SPLIT" }));
    expect(cut).toThrow("expected 4 tensor-parallel ranks to share layers.*.up evenly, got 6 groups of 4");
  });

  test.each<[string, TensorPlan, string]>([
    ["names no module", { "layers.*.across": column() }, 'a module named "layers.*.across", got none'],
    [
      "names too few parts",
      { "layers.0": column() },
      'layers.0 to be Affine, for a "column" rule, got a Layer',
    ],
    [
      "names one module twice",
      { ...plan, "layers.0.up": row() },
      'one rule for layers.0.up, got "layers.*.up" and "layers.0.up"',
    ],
    ["cannot split the kind", { "layers.*.up": vocabulary() }, "Embedding or VocabularyHead"],
  ])("is refused where it %s", (_, wrong, message) => {
    const cut = () => cutParameters(new Model(), wrong, { index: 0, count: 2 });
    expect(cut).toThrow(expect.objectContaining({ code: "TENSOR_PLAN" }));
    expect(cut).toThrow(message);
  });

  test("changes nothing for one rank", () => {
    const model = new Model();
    cutParameters(model, plan, { index: 0, count: 1 });
    expect(shapesOf(model)).toEqual(shapesOf(new Model()));
  });
});
