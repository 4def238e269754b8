import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  bindRandomness,
  cutBlocks,
  dematerialize,
  materialize,
  Randomness,
} from "../../src/compute/nn/index.ts";
import { AdamW, type LocalState, releaseState, stepLocal } from "../../src/compute/optim/index.ts";
import { backward, liveTensors, noGrad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { GPT2LMHeadModel, GPT2Model, gpt2Config } from "../../src/library/models/index.ts";

const tiny = { vocab_size: 32, n_positions: 8, n_embd: 12, n_layer: 2, n_head: 3 };
const noDropout = { resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 };

const ids = (rows: number[][]) => tensor(rows, { dtype: "int64" });
const values = (x: Tensor) => Array.from(x.toTypedArray() as Float32Array);

describe("the configuration of a GPT-2", () => {
  test("the default model is GPT-2 small, and unknown fields are ignored", () => {
    expect(new GPT2LMHeadModel().numParameters).toBe(124_439_808);
    const fields = { n_layer: 3, transformers_version: "5.18.0", model_type: "gpt2" };
    expect(gpt2Config(fields)).toEqual({ ...gpt2Config(), n_layer: 3 });
  });

  test("config.json names the model's special tokens, except those that its vocabulary lacks", () => {
    const given = { ...tiny, bos_token_id: 0, eos_token_id: 50256 };
    expect(new GPT2LMHeadModel(given).configJson).toMatchObject({ bos_token_id: 0, eos_token_id: null });
    expect(new GPT2LMHeadModel().configJson).toMatchObject({ bos_token_id: 50256, eos_token_id: 50256 });
  });

  test.each([
    ["heads that do not divide the width", { n_head: 5 }, "n_embd to be a multiple of n_head = 5"],
    ["a size of zero", { n_layer: 0 }, "n_layer to be a whole number from 1 to 4096, got 0"],
    ["a fractional size", { vocab_size: 1.5 }, "vocab_size"],
    ["a probability of one", { attn_pdrop: 1 }, "attn_pdrop to be in [0, 1)"],
    ["an epsilon of zero", { layer_norm_epsilon: 0 }, "layer_norm_epsilon to be positive"],
    [
      "an activation that is none",
      { activation_function: "gelu_old" },
      "activation_function to be one of gelu,",
    ],
    ["another family's file", { model_type: "bert" }, 'model_type to be "gpt2"'],
    ["an attention that it lacks", { add_cross_attention: true }, "add_cross_attention"],
    ["a flag that is none", { tie_word_embeddings: "yes" }, "tie_word_embeddings to be true or false"],
  ])("refuses %s", (_, fields, message) => {
    const create = () => new GPT2LMHeadModel({ ...tiny, ...fields } as object);
    expect(create).toThrow(
      expect.objectContaining({ code: "MODEL_CONFIG", message: expect.stringContaining(message) }),
    );
  });
});

describe("a GPT-2", () => {
  const model = new GPT2LMHeadModel({ ...tiny, ...noDropout });
  beforeEach(() => materialize(model, { seed: 1 }));
  afterEach(() => dematerialize(model));

  test("has Hugging Face's names, shapes and order, the output layer tied", () => {
    const expected = [
      ["transformer.wte.weight", [32, 12]],
      ["transformer.wpe.weight", [8, 12]],
      ...[0, 1].flatMap((layer) =>
        [
          ["ln_1.weight", [12]],
          ["ln_1.bias", [12]],
          ["attn.c_attn.weight", [12, 36]],
          ["attn.c_attn.bias", [36]],
          ["attn.c_proj.weight", [12, 12]],
          ["attn.c_proj.bias", [12]],
          ["ln_2.weight", [12]],
          ["ln_2.bias", [12]],
          ["mlp.c_fc.weight", [12, 48]],
          ["mlp.c_fc.bias", [48]],
          ["mlp.c_proj.weight", [48, 12]],
          ["mlp.c_proj.bias", [12]],
        ].map(([name, shape]) => [`transformer.h.${layer}.${name}`, shape]),
      ),
      ["transformer.ln_f.weight", [12]],
      ["transformer.ln_f.bias", [12]],
    ];
    expect([...model.namedParameters()].map(([name, { shape }]) => [name, shape])).toEqual(expected);
    const untied = new GPT2LMHeadModel({ ...tiny, tie_word_embeddings: false });
    expect([...untied.namedParameters().keys()].at(-1)).toBe("lm_head.weight");
  });

  test("is cut into its layers", () => {
    const { blocks, rest } = cutBlocks(model);
    expect(blocks.map(({ name, parameters }) => [name, parameters.size])).toEqual([
      ["transformer.h.0", 12],
      ["transformer.h.1", 12],
    ]);
    expect([...rest.keys()]).toEqual([
      "transformer.wte.weight",
      "transformer.wpe.weight",
      "transformer.ln_f.weight",
      "transformer.ln_f.bias",
    ]);
  });

  test("starts as Radford et al. do: deviation 0.02, narrower where the residual stream is added to", () => {
    const deviation = (name: string) => model.namedParameters().get(name)?.init;
    expect(deviation("transformer.h.0.attn.c_attn.weight")).toEqual({ kind: "normal", mean: 0, std: 0.02 });
    expect(deviation("transformer.h.1.mlp.c_proj.weight")).toEqual({ kind: "normal", mean: 0, std: 0.01 });
  });

  test("takes labels, which it shifts, and targets, which are shifted, for the same loss", () => {
    scope(() => {
      const inputs = ids([
        [1, 2, 3, 4],
        [5, 6, 7, 31],
      ]);
      const byLabels = model.forward(inputs, { labels: inputs }).loss;
      const byTargets = model.forward(inputs, {
        targets: ids([
          [2, 3, 4, -100],
          [6, 7, 31, -100],
        ]),
      }).loss;
      expect(byLabels.item()).toBe(byTargets.item());
      expect(byLabels.item()).toBeCloseTo(Math.log(32), 1);
    });
  });

  test("keeps as many logits as are asked for", () => {
    scope(() =>
      noGrad(() => {
        const inputs = ids([[1, 2, 3, 4]]);
        const { logits } = model.forward(inputs);
        expect(logits.shape).toEqual([1, 4, 32]);
        const last = model.forward(inputs, { logitsToKeep: 1 }).logits;
        expect(last.shape).toEqual([1, 1, 32]);
        const whole = values(logits).slice(-32);
        values(last).forEach((logit, index) => void expect(logit).toBeCloseTo(whole[index] ?? Number.NaN, 5));
      }),
    );
  });

  test("computes in bfloat16 where its parameters are", () => {
    scope(() => {
      const inputs = ids([[1, 2, 3, 4]]);
      const exact = model.forward(inputs, { labels: inputs }).loss.item();
      dematerialize(model);
      materialize(model, { seed: 1, dtype: "bfloat16" });
      const { loss } = model.forward(inputs, { labels: inputs });
      expect(loss.dtype).toBe("float32");
      expect(loss.item()).toBeCloseTo(exact, 1);
      backward([loss]);
      expect(model.transformer.wte.weight.tensor.grad?.dtype).toBe("bfloat16");
    });
  });

  test("learns a line by heart, holding as many tensors after every step", () => {
    const parameters = model.namedParameters();
    const optimizer = new AdamW(parameters, { lr: 1e-2, weightDecay: 0 });
    const moments: LocalState = new Map();
    const train = (step: number) => {
      const lossNats = scope(() => {
        const line = ids([[3, 1, 4, 1, 5, 9, 2, 6]]);
        const { loss } = model.forward(line, { labels: line });
        backward(loss);
        return loss.item();
      });
      stepLocal(parameters, optimizer, moments, step, { clipNorm: 1 });
      return { lossNats, live: liveTensors() };
    };
    const steps = Array.from({ length: 60 }, (_, index) => train(index + 1));
    expect(steps.at(-1)?.lossNats).toBeLessThan(0.05);
    expect(new Set(steps.map(({ live }) => live)).size).toBe(1);
    releaseState(moments);
  });

  test("draws its dropout from the step, so that a forward can be run again", () => {
    const noisy = new GPT2LMHeadModel(tiny);
    materialize(noisy, { seed: 1 });
    const randomness = new Randomness(4);
    bindRandomness(noisy, randomness);
    scope(() => {
      const inputs = ids([[1, 2, 3, 4]]);
      const loss = () => noisy.forward(inputs, { labels: inputs }).loss.item();
      const first = loss();
      randomness.restart();
      expect(loss()).toBe(first);
      randomness.step++;
      expect(loss()).not.toBe(first);
    });
    dematerialize(noisy);
  });

  test("gives a layer divided scores where its configuration says so", () => {
    const scaled = new GPT2LMHeadModel({ ...tiny, scale_attn_by_inverse_layer_idx: true });
    expect([...scaled.transformer.h].map((block) => block.attn.scale)).toEqual([0.5, 0.25]);
    expect(new GPT2Model({ ...tiny, scale_attn_weights: false }).h.at(1)?.attn.scale).toBe(1);
  });

  test.each([
    ["an id beyond the vocabulary", [[1, 32]], "token ids in [0, 32), got 32"],
    ["a negative id", [[-1, 3]], "token ids in [0, 32), got -1"],
    ["more positions than it has", [[0, 1, 2, 3, 4, 5, 6, 7, 8]], "from 1 to 8 positions, got 9"],
  ])("refuses %s", (_, rows, message) => {
    scope(() => {
      const refusal = { code: "MODEL_INPUT", message: expect.stringContaining(message) };
      expect(() => model.forward(ids(rows))).toThrow(expect.objectContaining(refusal));
    });
  });

  test("refuses ids of another rank or dtype, and targets of another shape", () => {
    scope(() => {
      const refusal = expect.objectContaining({ code: "MODEL_INPUT" });
      expect(() => model.forward(tensor([1, 2], { dtype: "int64" }))).toThrow(refusal);
      expect(() => model.forward(tensor([[1, 2]], { dtype: "float32" }))).toThrow(refusal);
      expect(() => model.forward(ids([[1, 2]]), { targets: ids([[1, 2, 3]]) })).toThrow(refusal);
    });
  });

  test.each([32, -5])("refuses the target %i, which is neither in the vocabulary nor ignored", (target) => {
    scope(() => {
      const compute = () => model.forward(ids([[1, 2]]), { targets: ids([[1, target]]) });
      expect(compute).toThrow(/targets to be -100 \(ignored\) or within 0 and 31/);
    });
  });
});
