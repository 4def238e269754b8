import { describe, expect, it } from "vitest";
import { BertForSequenceClassification, RobertaForSequenceClassification } from "../../src/models/index.ts";
import { attention, dematerialize, materialize, packedRow, positionsIn } from "../../src/nn/index.ts";
import { empty, grad, ops, scope, type Tensor, tensor } from "../../src/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";

const draw = (shape: number[], stream: number) => ops.troupe.philoxNormal_(empty(shape), 0, 1, 1, stream, 0);
const values = (x: Tensor) => Array.from(x.contiguous().to("float64").toTypedArray() as Float64Array);
const apart = (a: number[], b: number[]) =>
  Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));
const ids = (rows: number[][]) => tensor(rows, { dtype: "int64" });
/** Of five samples in a row of 37, three positions of which are padding. */
const bounds = [0, 9, 10, 22, 30, 34];
const length = 37;

describe("samples that share a row", () => {
  it.each([false, true])(
    "attend as under a mask of blocks, forward and backward, none in memory; causal: %s",
    (causal) =>
      scope(() => {
        const row = packedRow(tensor(bounds, { dtype: "int64" }), ids([Array(length).fill(1)]));
        const belongs = tensor(
          Array.from({ length }, (_, position) => bounds.findLastIndex((bound) => bound <= position)),
          { dtype: "int64" },
        );
        const mask = belongs.unsqueeze(1).eq(belongs.unsqueeze(0));
        const heads = [0, 1, 2].map((stream) => draw([1, 4, length, 8], stream).requiresGrad_(true));
        const [q, k, v] = heads as [Tensor, Tensor, Tensor];
        const weights = draw([1, 4, length, 8], 3);
        const both = [{ packed: row }, { mask }].map((seen) => {
          const out = attention(q, k, v, { causal, ...seen });
          return [out, ...grad(out.mul(weights).sum(), heads)].map((x) => values(x as Tensor));
        });
        for (const index of [0, 1, 2, 3])
          expect(apart(both[0]?.[index] ?? [], both[1]?.[index] ?? [])).toBeLessThan(2e-6);
      }),
  );

  it.each([
    ["BERT", (fields: object) => new BertForSequenceClassification({ ...fields })],
    [
      "RoBERTa, whose positions begin elsewhere",
      (fields: object) => new RobertaForSequenceClassification({ ...fields, pad_token_id: 1 }),
    ],
  ])("are read as rows of their own are: %s", (_, make) =>
    scope(() => {
      const model = make({
        ...{ vocab_size: 64, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4 },
        ...{ intermediate_size: 64, max_position_embeddings: 20, num_labels: 3 },
        ...{ hidden_dropout_prob: 0, attention_probs_dropout_prob: 0 },
      });
      materialize(model, { seed: 5 });
      // Longer as a row than any sample may be.
      const texts = [12, 3, 7, 1].map((size, text) =>
        Array.from({ length: size }, (_, place) => 5 + ((11 * place + text) % 50)),
      );
      const packed = texts.flat();
      const starts = [0];
      for (const { length: size } of texts) starts.push((starts.at(-1) ?? 0) + size);
      const together = model.forward({
        inputIds: ids([[...packed, 9]]),
        segments: tensor(starts, { dtype: "int64" }),
      });
      const alone = texts.flatMap((text) =>
        values(model.forward({ inputIds: ids([text]) }).logits as Tensor),
      );
      expect(together.logits?.shape).toEqual([4, 3]);
      expect(apart(values(together.logits as Tensor), alone)).toBeLessThan(1e-6);
      dematerialize(model);
    }),
  );

  it("are counted from the beginning of each, padding behind them too", () =>
    scope(() => {
      const row = packedRow(tensor([0, 3, 4], { dtype: "int64" }), ids([[1, 1, 1, 1, 1, 1]]));
      expect(values(positionsIn(row))).toEqual([0, 1, 2, 0, 0, 1]);
    }));

  it("are refused where their bounds are none, or something else hides positions too", () =>
    scope(() => {
      const bad = (numbers: number[], rows = 1) =>
        refusal(() => packedRow(tensor(numbers, { dtype: "int64" }), ids(Array(rows).fill([1, 1, 1]))))
          ?.message;
      for (const message of [bad([0, 2, 2]), bad([1, 3]), bad([0, 4]), bad([0]), bad([0, 3], 2)])
        expect(message).toMatch(/expected bounds that rise from 0 to at most 3, in one row/);
      const q = draw([1, 2, 3, 4], 0);
      const row = { bounds: [0, 3], length: 3 };
      expect(refusal(() => attention(q, q, q, { packed: row, window: 2 }))?.message).toContain(
        "with one of them",
      );
      expect(refusal(() => attention(q, q, q, { packed: { bounds: [0, 3], length: 4 } }))?.message).toContain(
        "4 positions",
      );
    }));
});
