import { describe, expect, it } from "vitest";
import { dematerialize, isFused, materialize, unfused } from "../../src/compute/nn/index.ts";
import { grad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import {
  BertForPreTraining,
  BertForSequenceClassification,
  GPT2LMHeadModel,
  LlamaForCausalLM,
  type TaskModel,
} from "../../src/library/models/index.ts";

const values = (x: Tensor) => Array.from(x.contiguous().to("float64").toTypedArray() as Float64Array);
const inputIds = () =>
  tensor(
    Array.from({ length: 24 }, (_, place) => (7 * place) % 50),
    { dtype: "int64", shape: [2, 12] },
  );
const encoder = {
  ...{ vocab_size: 64, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4 },
  ...{
    intermediate_size: 64,
    max_position_embeddings: 20,
    hidden_dropout_prob: 0,
    attention_probs_dropout_prob: 0,
  },
};
const llama = {
  ...{ vocab_size: 64, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4 },
  ...{ num_key_value_heads: 2, intermediate_size: 48, max_position_embeddings: 20 },
};
const decoder = { vocab_size: 64, n_embd: 32, n_layer: 2, n_head: 4, n_positions: 16 };

describe("a forward without kernels that stand for several operators", () => {
  it.each([
    ["BERT, classifying", () => new BertForSequenceClassification(encoder), { labels: [1, 0] }],
    [
      "BERT, pre-training",
      () => new BertForPreTraining(encoder),
      { labels: undefined, nextSentenceLabel: [0, 1] },
    ],
    [
      "GPT-2",
      () => new GPT2LMHeadModel({ ...decoder, embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0 }),
      { labels: undefined },
    ],
    ["LLaMA", () => new LlamaForCausalLM(llama), { labels: undefined }],
  ] as [string, () => TaskModel, Record<string, number[] | undefined>][])(
    "is the same model, loss and gradient: %s",
    (_, make, asked) =>
      scope(() => {
        const model = make();
        materialize(model, { seed: 5 });
        const batch = Object.fromEntries(
          Object.entries(asked).map(([name, list]) => [
            name,
            list === undefined ? inputIds() : tensor(list, { dtype: "int64" }),
          ]),
        );
        const forward = () => model.forward({ inputIds: inputIds(), ...batch }).loss as Tensor;
        const memories = [...model.namedParameters()].map(([, { memory }]) => memory as Tensor);
        const [own, composed] = [forward, () => unfused(forward)].map((pass) => {
          const loss = pass();
          return [loss, ...grad(loss, memories)].flatMap((each) => values(each as Tensor));
        }) as [number[], number[]];
        // The same sums in another order, in float32.
        expect(
          Math.max(...own.map((value, at) => Math.abs(value - (composed[at] ?? Number.NaN)))),
        ).toBeLessThan(2e-6);
        expect(own).not.toEqual(composed);
        dematerialize(model);
      }),
  );

  it("ends with it, whatever it throws", () => {
    expect(() =>
      unfused(() => {
        expect(isFused()).toBe(false);
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(isFused()).toBe(true);
  });
});
