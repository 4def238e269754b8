import { describe, expect, it } from "vitest";
import { attention, dematerialize, materialize, packedRow, positionsIn } from "../../src/compute/nn/index.ts";
import { empty, grad, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { leftToRightRows } from "../../src/job/rapidformer/index.ts";
import { documentPlaces } from "../../src/library/data/index.ts";
import {
  BertForQuestionAnswering,
  BertForSequenceClassification,
  GPT2LMHeadModel,
  LlamaForCausalLM,
  RobertaForSequenceClassification,
} from "../../src/library/models/index.ts";
import { refusal } from "../tensor/numbers.ts";

const draw = (shape: number[], stream: number) => ops.troupe.philoxNormal_(empty(shape), 0, 1, 1, stream, 0);
const values = (x: Tensor) => Array.from(x.contiguous().to("float64").toTypedArray() as Float64Array);
const apart = (a: number[], b: number[]) =>
  Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));
const ids = (rows: number[][]) => tensor(rows, { dtype: "int64" });
/** Bounds of five samples in a row of 37, three positions of which are padding. */
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

  it("have a bias by distance as rows of their own have, with its gradient", () =>
    scope(() => {
      const row = packedRow(tensor(bounds, { dtype: "int64" }), ids([Array(length).fill(1)]));
      const heads = [0, 1, 2].map((stream) => draw([1, 4, length, 8], stream).requiresGrad_(true));
      const bias = draw([1, 4, 12, 12], 4).requiresGrad_(true);
      const weights = draw([1, 4, length, 8], 3);
      const [q, k, v] = heads as [Tensor, Tensor, Tensor];
      const alone = [...bounds, length].slice(1).map((end, sample) => {
        const begin = bounds[sample] ?? 0;
        const own = heads.map((x) => x.narrow(2, begin, end - begin)) as [Tensor, Tensor, Tensor];
        return attention(...own, { bias: bias.narrow(2, 0, end - begin).narrow(3, 0, end - begin) });
      });
      const both = [attention(q, k, v, { packed: row, bias }), ops.cat(alone, 2)].map((out) =>
        [out, ...grad(out.mul(weights).sum(), [...heads, bias])].map((x) => values(x as Tensor)),
      );
      for (const index of [0, 1, 2, 3, 4])
        expect(apart(both[0]?.[index] ?? [], both[1]?.[index] ?? [])).toBeLessThan(2e-6);
    }));

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

  const sizes = { vocab_size: 64, hidden_size: 32, num_attention_heads: 4 };
  const llama = { ...sizes, intermediate_size: 48, num_hidden_layers: 2, num_key_value_heads: 2 };
  it.each([
    [
      "GPT-2",
      () =>
        new GPT2LMHeadModel({
          ...{ vocab_size: 64, n_embd: 32, n_layer: 2, n_head: 4, n_positions: 16 },
          ...{ embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0 },
        }),
    ],
    ["LLaMA", () => new LlamaForCausalLM({ ...llama, max_position_embeddings: 16 })],
    [
      "Mistral, with a window",
      () =>
        new LlamaForCausalLM({
          ...llama,
          ...{ model_type: "mistral", max_position_embeddings: 16, sliding_window: 5 },
        }),
    ],
  ])("continue as documents of their own do, and as under Megatron's mask of T × T: %s", (_, make) =>
    scope(() => {
      const model = make();
      materialize(model, { seed: 5 });
      const end = 63;
      // Documents of 5, 4 and 7 tokens, their ends included; then one that fills a row.
      const tokens = Array.from({ length: 32 }, (__, place) =>
        place === 4 || place === 8 || place === 31 ? end : 1 + ((13 * place) % 50),
      );
      const targets = ids([tokens.map((token, place) => tokens[place + 1] ?? token)]);
      const ends = { endOfDocument: end, resetPositions: true, resetAttention: true };
      const rows = ids([tokens.slice(0, 16), tokens.slice(16)]);
      const { lossMask: __, ...row } = leftToRightRows(rows, ends);
      const together = model.forward({ ...row }).logits as Tensor;
      const documents = [
        [0, 5],
        [5, 9],
        [9, 16],
        [16, 32],
      ];
      const alone = documents.flatMap(([begin, to]) =>
        values(model.forward(ids([tokens.slice(begin, to)])).logits),
      );
      expect(together.shape).toEqual([1, 32, 64]);
      expect(apart(values(together), alone)).toBeLessThan(1e-6);
      const gradients = [
        () => model.forward(row.inputIds, { ...row, targets }).loss,
        () =>
          documents
            .map(([begin = 0, to = 0]) =>
              model
                .forward(ids([tokens.slice(begin, to)]), { targets: targets.narrow(1, begin, to - begin) })
                .loss.mul((to - begin) / 32),
            )
            .reduce((sum, loss) => sum.add(loss)),
      ].map((loss) => {
        const memories = [...model.namedParameters()].map(([, { memory }]) => memory as Tensor);
        return grad(loss(), memories).flatMap((gradient) => values(gradient as Tensor));
      });
      expect(apart(gradients[0] ?? [], gradients[1] ?? [])).toBeLessThan(1e-6);
      if (model instanceof GPT2LMHeadModel) {
        const { begins, positions } = documentPlaces(tokens.slice(0, 16), ends);
        const documentOf = (t: number) => begins.findLastIndex((begin) => begin <= t);
        const seen = Uint8Array.from({ length: 16 * 16 }, (_, at) => {
          const [t, other] = [Math.floor(at / 16), at % 16];
          return other <= t && documentOf(other) === documentOf(t) ? 1 : 0;
        });
        const mask = tensor(seen, { shape: [1, 1, 16, 16] }).eq(1);
        const { wte, wpe, h, ln_f } = model.transformer;
        let x = wte.forward(rows.narrow(0, 0, 1)).add(wpe.forward(ids([[...positions]])));
        for (const block of h) x = block.forward(x, mask);
        const masked = model.lm_head.forward(ln_f.forward(x), {});
        expect(apart(values(masked), values(together.narrow(1, 0, 16)))).toBeLessThan(1e-6);
      }
      dematerialize(model);
    }),
  );

  it("are at the given positions, and see earlier samples if only positions are reset", () =>
    scope(() => {
      const model = new GPT2LMHeadModel({
        ...{ vocab_size: 64, n_embd: 32, n_layer: 1, n_head: 4, n_positions: 16 },
        ...{ embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0 },
      });
      materialize(model, { seed: 5 });
      const row = leftToRightRows(ids([[5, 6, 63, 7, 8]]), { endOfDocument: 63, resetPositions: true });
      expect(values(row.segments)).toEqual([0, 5]);
      expect(values(row.positionIds)).toEqual([0, 1, 2, 0, 1]);
      const [plain, packed] = [
        model.forward(row.inputIds).logits,
        model.forward({ inputIds: row.inputIds, segments: row.segments, positionIds: row.positionIds })
          .logits as Tensor,
      ];
      // Up to the end of the first document nothing differs.
      expect(apart(values(plain.narrow(1, 0, 3)), values(packed.narrow(1, 0, 3)))).toBeLessThan(1e-6);
      expect(apart(values(plain.narrow(1, 3, 2)), values(packed.narrow(1, 3, 2)))).toBeGreaterThan(1e-4);
      const mask = tensor([[1, 1, 1, 1, 0]], { dtype: "int64" });
      expect(
        refusal(() => model.forward({ inputIds: row.inputIds, segments: row.segments, attentionMask: mask }))
          ?.message,
      ).toContain("a mask with them");
      dematerialize(model);
    }));

  it("packed samples are scored like separate rows: a span of each", () =>
    scope(() => {
      const model = new BertForQuestionAnswering({
        ...{ vocab_size: 64, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 4 },
        ...{ intermediate_size: 64, max_position_embeddings: 20 },
        ...{ hidden_dropout_prob: 0, attention_probs_dropout_prob: 0 },
      });
      materialize(model, { seed: 5 });
      const texts = [
        [3, 4, 5, 6, 7],
        [8, 9],
        [10, 11, 12],
      ];
      // The second has no answer: beyond its end, though not beyond the longest's.
      const [starts, stops] = [
        [1, 2, 0],
        [3, 2, 2],
      ];
      const numbers = (list: readonly number[]) => tensor([...list], { dtype: "int64" });
      const together = model.forward({
        ...{ inputIds: ids([[...texts.flat(), 0, 0]]), segments: numbers([0, 5, 7, 10]) },
        ...{ startPositions: numbers(starts), endPositions: numbers(stops) },
      }).loss as Tensor;
      const losses = [0, 2].map((text) =>
        (
          model.forward({
            inputIds: ids([texts[text] ?? []]),
            ...{ startPositions: numbers([starts[text] ?? 0]), endPositions: numbers([stops[text] ?? 0]) },
          }).loss as Tensor
        ).item(),
      );
      expect(together.item()).toBeCloseTo(((losses[0] ?? 0) + (losses[1] ?? 0)) / 2, 6);
      dematerialize(model);
    }));

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
      const mask = draw([1, 1, 3, 3], 1).gt(0);
      expect(refusal(() => attention(q, q, q, { packed: row, mask }))?.message).toContain("with one");
      const two = { bounds: [0, 2, 3], length: 3 };
      for (const shape of [
        [1, 2, 3, 3],
        [1, 2, 1, 2],
        [2, 2],
      ])
        expect(refusal(() => attention(q, q, q, { packed: two, bias: draw(shape, 1) }))?.message).toContain(
          "a bias [1, 2, 2, 2]",
        );
      expect(refusal(() => attention(q, q, q, { packed: { bounds: [0, 3], length: 4 } }))?.message).toContain(
        "4 positions",
      );
    }));
});
