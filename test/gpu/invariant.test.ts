import { describe, expect, it } from "vitest";
import { dematerialize, type Module, materialize } from "../../src/compute/nn/index.ts";
import { ops, setInvariant, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import type { RuntimeOptions } from "../../src/entries/index.ts";
import { type GPT2LMHeadModel, generateTexts } from "../../src/library/models/index.ts";
import { floatTypes, normal, roundingError } from "../kernels/inputs.ts";
import { drawn, families, logProbsByTrainer, prompts } from "../models/invariant-texts.ts";
import { apart, kinds } from "../trainer/live/apart.ts";
import { type Attending, back, compare, expectLike, hasGpu, hasKernels, onGpu, withKernels } from "./gpu.ts";

const { troupe } = ops;

function invariantly(body: () => void): void {
  setInvariant(true);
  try {
    body();
  } finally {
    setInvariant(false);
  }
}

describe.skipIf(!hasKernels)("invariant forwards by the kernels for CUDA", () => {
  describe.each(floatTypes)("in %s", (dtype) => {
    it.each([
      [1, 1, 1],
      [3, 401, 77],
      [70, 64, 130],
      [2, 0, 3],
      [0, 5, 3],
    ])("multiply %i rows of %i by %i columns as the host does, to the bit", (rows, inner, columns) =>
      invariantly(() => {
        const wide = (size: number, stream: number) =>
          normal([size, inner + 3], stream, { dtype }).narrow(1, 2, inner);
        const bias = normal([columns], 3, { dtype });
        const add = (a: Tensor, b: Tensor, c: Tensor) => [
          a.mm(b),
          ops.addmm(c, a, b),
          ops.addmm(c, a, b, 0.5, 2),
          ops.linear(a, b.t(), c),
          ops.stack([a, a.mul(2)], 0).bmm(ops.stack([b, b], 0)),
        ];
        for (const a of [
          normal([rows, inner], 1, { dtype }),
          normal([inner, rows], 1, { dtype }).t(),
          wide(rows, 1),
        ])
          for (const b of [normal([inner, columns], 2, { dtype }), wide(columns, 2).t()])
            compare({ inputs: [a, b, bias], run: add as never, forward: "bits" });
      }),
    );

    it("make sums near the smallest numbers as the host does, zeros below zero too", () =>
      invariantly(() => {
        for (const std of [1e-18, 1e-19, 1e-20, 1e-23]) {
          const inputs = [normal([9, 35], 1, { dtype, std }), normal([35, 70], 2, { dtype, std })];
          compare({ inputs, run: (a, b) => (a as Tensor).mm(b as Tensor), forward: "bits" });
        }
      }));

    it.each([
      ["plainly", { groups: 4, rows: 21, keys: 21 }],
      ["in order", { groups: 4, rows: 21, keys: 21, causal: true }],
      ["in groups through a window", { groups: 2, rows: 21, keys: 21, causal: true, window: 6 }],
      ["with more keys than queries", { groups: 2, rows: 5, keys: 40, causal: true }],
      ["with fewer keys than queries", { groups: 2, rows: 9, keys: 4, causal: true }],
      ["from more rows than there are blocks", { groups: 2, rows: 270, keys: 5 }],
      ["where keys are hidden", { groups: 2, rows: 21, keys: 21, causal: true, mask: true }],
      [
        "where keys are hidden, through a window",
        { groups: 1, rows: 21, keys: 21, window: 6, causal: true, mask: true },
      ],
      ["with a bias", { groups: 4, rows: 21, keys: 21, bias: true }],
      [
        "with a bias, where keys are hidden",
        { groups: 2, rows: 21, keys: 21, causal: true, mask: true, bias: true },
      ],
    ])("attend %s as the host does, to the bit", (_, given) =>
      invariantly(() => {
        const {
          groups,
          rows,
          keys,
          causal = false,
          window = 0,
          mask = false,
          bias = false,
        } = given as Attending;
        const heads = (count: number, length: number, stream: number) =>
          normal([2, length, count, 11], stream, { dtype }).requiresGrad_();
        // The second row begins with padding: its first queries see nothing.
        const seen = Array.from({ length: 2 * keys }, (_, place) =>
          (place < keys ? place % 3 : place - keys > 4) ? 1 : 0,
        );
        const present = tensor(seen, { shape: [2, 1, 1, keys] }).gt(0);
        const attend = (...[q, k, v, m, c]: Tensor[]) => {
          const [queries, ...read] = [q, k, v].map((x) => (x as Tensor).transpose(1, 2)) as [
            Tensor,
            Tensor,
            Tensor,
          ];
          const isPlain = groups === 4 && !mask && !bias;
          if (isPlain) return troupe.attention(queries, ...read, causal, 0.3);
          return troupe.maskedAttention(
            queries,
            ...read,
            mask ? m : undefined,
            bias ? c : undefined,
            causal,
            window,
            0.3,
          );
        };
        const added = normal([1, 4, rows, keys], 4).requiresGrad_(bias);
        const inputs = [heads(4, rows, 1), heads(groups, keys, 2), heads(groups, keys, 3), present, added];
        compare({ inputs, run: attend, forward: "bits", backward: [32 * roundingError[dtype]] });
      }),
    );

    it("sum the logits of a row in one order, wherever it begins", () =>
      withKernels(() => {
        for (const numClasses of [1, 7, 77, hasGpu ? 50_257 : 2501]) {
          const logits = onGpu(normal([5, numClasses], 1, { dtype, std: 3 }));
          const [targets, weights] = [onGpu(zeros([5], { dtype: "int64" })), onGpu(normal([numClasses], 2))];
          const all = troupe.vocabularyStatistics(logits, targets, 0, numClasses, -1, weights);
          for (let row = 0; row < 5; row++) {
            const [own, target] = [logits, targets].map((x) => x.narrow(0, row, 1).clone()) as [
              Tensor,
              Tensor,
            ];
            const alone = troupe.vocabularyStatistics(own, target, 0, numClasses, -1, weights);
            expectLike(alone, back(all.narrow(1, row, 1)), "bits", `row ${row} of ${numClasses}`);
          }
        }
      }));

    it("norm a row in one order, wherever it and the weights begin", () =>
      withKernels(() => {
        for (const dim of [64, 66, 1028]) {
          const shifted = (numel: number, stream: number, of = dtype) =>
            onGpu(normal([numel + 1], stream, { dtype: of })).narrow(0, 1, numel);
          const [x, weight, bias] = [
            shifted(3 * dim, 1).view([3, dim]),
            shifted(dim, 2),
            shifted(dim, 3),
          ] as const;
          const norms = (rows: Tensor, w: Tensor, b: Tensor) => [
            troupe.layerNorm(rows, w, b, 1e-5),
            troupe.rmsNorm(rows, w, 1e-6),
            ...troupe.addLayerNorm(rows, rows, w, b, 1e-5),
            ...troupe.addRmsNorm(rows, rows, w, 1e-6),
          ];
          const apart = norms(x, weight, bias);
          for (const [index, normed] of norms(x.clone(), weight.clone(), bias.clone()).entries())
            expectLike(normed, back(apart[index] as Tensor), "bits", `norm ${index} of ${dim}`);
        }
      }));
  });

  it.each(
    // One of both where the host runs the kernels.
    Object.keys(families).flatMap((name, index) =>
      (["float32", "bfloat16"] as const)
        .filter((_, place) => hasGpu || place === index % 2)
        .map((dtype) => [name, dtype] as const),
    ),
  )(
    "give a text of %s in %s one log-probability: alone or beside others, from pages or from all at once",
    (name, dtype) =>
      withKernels(() =>
        invariantly(() => {
          const model = families[name]?.() as Module & GPT2LMHeadModel;
          materialize(model, { seed: 5, dtype });
          // Few and short where the host runs the kernels, thread by thread.
          const given = hasGpu ? prompts : prompts.slice(0, 3);
          const options = { maxNewTokens: hasGpu ? 70 : 6, seed: 4 };
          const texts = generateTexts(model, given, options);
          expect(logProbsByTrainer(model, texts)).toEqual(drawn(texts));
          expect(logProbsByTrainer(model, texts, true)).toEqual(drawn(texts));
          const [first] = texts.slice(0, 1);
          expect(drawn(generateTexts(model, given.slice(0, 1), options))).toEqual(drawn([first as never]));
          for (const text of texts.slice(0, 2))
            expect(logProbsByTrainer(model, [text])).toEqual(drawn([text]));
          dematerialize(model);
        }),
      ),
  );
});

const layouts: readonly RuntimeOptions[] = [
  { ranks: 1 },
  { ranks: 2, zero: 3 },
  { ranks: 2, tp: 2 },
  { ranks: 2, pp: 2 },
];

describe.skipIf(!hasGpu)("an invariant generator and its trainer on a GPU", () => {
  it.each(layouts.flatMap((layout) => kinds.map((kind) => [...kind, layout] as const)))(
    "agree to the last bit: %s in %s, %j",
    async (family, precision, layout) => {
      expect(await apart({ ...layout, precision, invariant: true, device: "cuda:0" }, family)).toEqual([
        0, 0, 0, 0,
      ]);
    },
  );
});
