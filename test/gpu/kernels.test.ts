import { describe, expect, it } from "vitest";
import { empty, ops, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { type FloatType, floatTypes, normal, roundingError } from "../kernels/inputs.ts";
import { numbers } from "../tensor/numbers.ts";
import { type Attending, back, compare, expectLike, hasGpu, hasKernels, onGpu, withKernels } from "./gpu.ts";

const { troupe } = ops;

/** Sums over many elements are made in another order: some roundings of the sum's format. */
const near = (dtype: FloatType) => 4 * roundingError[dtype];

const leaf = (shape: number[], stream: number, dtype: FloatType, std?: number) =>
  normal(shape, stream, { dtype, ...(std === undefined ? {} : { std }) }).requiresGrad_();

/** Rows enough for a GPU's many blocks; of few blocks where the host runs them, thread by thread. */
const many = (rows: number) => (hasGpu ? rows : Math.min(rows, 70));

describe.skipIf(!hasKernels)("CUDA kernels", () => {
  describe.each(floatTypes)("in %s", (dtype) => {
    it.each([[[5, 33]], [[4, 3, 64]], [[0, 8]], [[1]]])("gate %j as the host does, to the bit", (shape) => {
      compare({
        inputs: [leaf(shape, 1, dtype, 3), leaf(shape, 2, dtype)],
        run: troupe.swiglu,
        forward: "bits",
      });
    });

    it.each([[[7, 65]], [[4, 5, 64]], [[300, 128]], [[2, 0]]])(
      "add a bias and bend %j to the bit; sum the bias's gradient",
      (shape) => {
        const bias = leaf(shape.slice(-1), 2, dtype);
        compare({
          inputs: [leaf(shape, 1, dtype), bias],
          run: (x, bias) => troupe.biasGelu(x, bias),
          forward: "bits",
          backward: ["bits", near(dtype)],
        });
      },
    );

    it.each([[[7, 65]], [[4, 5, 64]], [[many(1000), 768]], [[3, 5000]], [[0, 8]]])(
      "normalise the rows of %j",
      (shape) => {
        const size = shape.slice(-1);
        const given = () =>
          [
            leaf(shape, 1, dtype),
            leaf(shape, 2, dtype),
            leaf(size, 3, "float32"),
            leaf(size, 4, "float32"),
          ] as const;
        const [x, residual, weight, bias] = given();
        const forward = near(dtype);
        compare({ inputs: [x, weight, bias], run: (x, w, b) => troupe.layerNorm(x, w, b, 1e-5), forward });
        compare({ inputs: [x, weight], run: (x, w) => troupe.layerNorm(x, w, undefined, 1e-5), forward });
        compare({
          inputs: [x, residual, weight, bias],
          run: (x, r, w, b) => troupe.addLayerNorm(x, r, w, b, 1e-5),
          forward,
        });
        compare({ inputs: [x, weight], run: (x, w) => troupe.rmsNorm(x, w, 1e-6), forward });
        compare({
          inputs: [x, residual, weight],
          run: (x, r, w) => troupe.addRmsNorm(x, r, w, 1e-6),
          forward,
        });
      },
    );

    it.each([[[7, 65]], [[4, 5, 64]], [[many(1000), 768]], [[3, 5000]], [[0, 8]]])(
      "add rows of %j in the pass that normalises them, to the bits of two",
      (shape) => {
        const [x, residual] = [leaf(shape, 1, dtype), leaf(shape, 2, dtype)];
        const [weight, bias] = [leaf(shape.slice(-1), 3, "float32"), leaf(shape.slice(-1), 4, "float32")];
        const sum = x.detach().add(residual.detach());
        withKernels(() => {
          const [one, other, scale, shift] = [x, residual, weight, bias].map(onGpu) as [
            Tensor,
            Tensor,
            Tensor,
            Tensor,
          ];
          const layer = troupe.addLayerNorm(one, other, scale, shift, 1e-5);
          const rms = troupe.addRmsNorm(one, other, scale, 1e-6);
          expectLike(layer[0], sum, "bits", "sum before a layer norm");
          expectLike(rms[0], sum, "bits", "sum before an RMS norm");
          const [alone, rmsAlone] = [
            troupe.layerNorm(layer[0].detach(), scale, shift, 1e-5),
            troupe.rmsNorm(rms[0].detach(), scale, 1e-6),
          ];
          expectLike(layer[1], back(alone), "bits", "layer norm");
          expectLike(rms[1], back(rmsAlone), "bits", "RMS norm");
        });
      },
    );

    it("rotate heads that are cut from projections, to the bit", () => {
      for (const half of [5, 8]) {
        const x = normal([2, 7, 3, 16], 1, { dtype }).requiresGrad_();
        const angles = [normal([7, half], 2).cos(), normal([7, half], 2).sin()];
        compare({
          inputs: [x, ...angles],
          run: (x, c, s) => troupe.rotary(x.transpose(1, 2), c, s),
          forward: "bits",
        });
      }
    });

    it.each([
      [[64, 33], 0.1, 0, 64 * 33, 0],
      [[7, 13], 0.5, 3, 13, 40],
      [[16, 8], 0.25, 6, 8, 24],
      [[5], 1, 0, 5, 0],
      [[5], 0, 0, 5, 0],
    ])("drop of %j by %f from %i on what the host drops", (shape, p, offset, run, stride) => {
      compare({
        inputs: [leaf(shape, 1, dtype)],
        run: (x) => troupe.dropout(x, p, 77, 5, offset, run, stride),
        forward: "bits",
      });
    });

    it("draw what the host draws, from any place on", () => {
      for (const [numel, offset] of [
        [1, 0],
        [4096, 0],
        [1003, 2 ** 33 + 1],
        [130, 6],
      ] as const) {
        const fill = () => [
          troupe.philoxUniform_(empty([numel], { dtype }), -2, 3, 11, 2 ** 40, offset),
          troupe.philoxNormal_(empty([numel], { dtype }), 0.5, 2, 11, 3, offset),
        ];
        const host = fill();
        withKernels(() => {
          const device = fill();
          for (const [index, drawn] of host.entries())
            expectLike(device[index] as Tensor, drawn, "bits", `${numel} from ${offset}`);
        });
      }
    });

    it("gather gradients into a flat buffer, and add up ranks in their order, to the bit; add products", () => {
      for (const target of floatTypes) {
        const parts = [
          normal([3, 5], 1, { dtype }),
          normal([17], 2, { dtype }),
          normal([4, 6], 3, { dtype }).t(),
        ];
        const gather =
          (accumulate: boolean) =>
          (...given: Tensor[]) => {
            const flat = given[0]?.mul(1) as Tensor;
            troupe.collectGradients_(
              flat,
              [given[1], undefined, given[2], given[3]],
              [1, 16, 18, 40],
              accumulate,
            );
            return flat;
          };
        const flat = normal([70], 9, { dtype: target });
        for (const accumulate of [true, false])
          compare({ inputs: [flat, ...parts], run: gather(accumulate), forward: "bits" });
      }
      if (dtype !== "float32") {
        // The product is rounded where the kernels run on the host.
        const matrices = [
          normal([33, 17], 1),
          normal([33, 40], 2, { dtype }),
          normal([40, 17], 3, { dtype }),
        ];
        const add = (...given: Tensor[]) => {
          const [sum, a, b] = given as [Tensor, Tensor, Tensor];
          const added = sum.mul(1);
          troupe.addProduct_(added, a, b);
          return added;
        };
        compare({ inputs: matrices, run: add, forward: 2 * roundingError[dtype] });
      }
      const sources = [1, 2, 3].map((stream) => normal([1000], stream, { dtype, std: 10 ** stream }));
      const reduce = (...given: Tensor[]) => {
        const out = (given[0] as Tensor).narrow(0, 0, 501).to("float32").mul(1);
        const squares = out.narrow(0, 0, 1).to("float64").mul(1);
        troupe.reduceRanks_(out, given, 77, squares);
        return ops.cat([out.to("float64"), squares]);
      };
      compare({ inputs: sources, run: reduce, forward: "bits" });
    });

    it.each([0, 1, 31, 1023, 1025, 100_000])(
      "sum the squares of each 1,024 of %i elements to the bit",
      (numel) => {
        compare({ inputs: [normal([numel], 1, { dtype })], run: troupe.chunkSquareSums, forward: "bits" });
      },
    );

    it.each([[[9, 7]], [[20, 131]], [[hasGpu ? 64 : 6, 50_257]], [[33, 1000]]])(
      "take the cross entropy of logits %j, and its gradient",
      ([rows = 0, classes = 0]) => {
        const ids = Array.from({ length: rows }, (_, row) => (row % 5 === 2 ? -100 : (row * 7919) % classes));
        const targets = tensor(ids, { dtype: "int64" });
        compare({
          inputs: [leaf([rows, classes], 1, dtype, 3), targets],
          run: (x, t) => troupe.crossEntropy(x, t, -100),
          forward: 1e-6,
          backward: [near(dtype)],
        });
        const hidden = leaf([rows, 24], 2, dtype),
          weight = leaf([classes, 24], 3, dtype, 0.3);
        compare({
          inputs: [hidden, weight, targets],
          run: (h, w, t) => troupe.linearCrossEntropy(h, w, t, -100),
          forward: near(dtype),
          backward: [2 * near(dtype)],
        });
      },
    );

    it("tell a rank's share of a vocabulary, and write its gradient over it", () => {
      const logits = normal([6, 77], 1, { dtype });
      const targets = tensor([100, 5, 130, -1, 176, 177], { dtype: "int64" });
      const weights = normal([77], 2).abs();
      const statistics = (weighed: boolean) => (x: Tensor, t: Tensor, w: Tensor) =>
        troupe.vocabularyStatistics(x, t, 100, 200, -1, weighed ? w : undefined);
      for (const weighed of [false, true])
        compare({ inputs: [logits, targets, weights], run: statistics(weighed) as never, forward: 1e-5 });
      const coefficients = normal([3, 6], 3).abs();
      const logsumexp = logits.to("float32").logsumexp([1]);
      const gradient =
        (weighed: boolean) =>
        (...[x, l, t, c, w]: Tensor[]) => {
          const out = (x as Tensor).mul(1);
          troupe.vocabularyGradient_(
            out,
            l as Tensor,
            t as Tensor,
            100,
            c as Tensor,
            weighed ? w : undefined,
          );
          return out;
        };
      for (const weighed of [false, true])
        compare({
          inputs: [logits, logsumexp, targets, coefficients, weights],
          run: gradient(weighed),
          forward: near(dtype),
        });
    });

    it.each([
      [[2, 3, 16, 8], false],
      [[1, 2, 130, 64], true],
      [[2, 4, 77, 40], true],
    ])("attend over %j (causal: %s)", (shape, causal) => {
      const [batch = 0, heads = 0, rows = 0, width = 0] = shape;
      const cut = (stream: number) => leaf([batch, rows, heads, width], stream, dtype);
      const run = (q: Tensor, k: Tensor, v: Tensor) =>
        troupe.attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal, 0.3);
      // Flash attention rounds probabilities where the host keeps them.
      compare({
        inputs: [cut(1), cut(2), cut(3)],
        run,
        forward: 2 * near(dtype),
        backward: [6 * near(dtype)],
      });
    });

    it.each([
      ["a window", { groups: 2, rows: 12, keys: 12, causal: true, window: 4 }],
      ["fewer queries than keys", { groups: 4, rows: 5, keys: 12, causal: true }],
      ["more queries than keys", { groups: 2, rows: 12, keys: 5, causal: true }],
      [
        "more queries than keys, a window and a bias",
        { groups: 2, rows: 12, keys: 5, causal: true, window: 3, bias: true },
      ],
      ["one query", { groups: 1, rows: 1, keys: 12, causal: true }],
      ["a mask that hides all of a row", { groups: 4, rows: 8, keys: 8, mask: true, blind: true }],
      [
        "a mask that hides all that a window leaves, and a bias",
        { groups: 2, rows: 8, keys: 8, causal: true, window: 4, mask: true, bias: true, blind: true },
      ],
      ["a bias that learns", { groups: 4, rows: 8, keys: 8, bias: true, mask: true }],
    ])("attend with %s", (_, given) => {
      const { groups, rows, keys, causal = false, window = 0, mask, bias, blind } = given as Attending;
      const inputs = [
        leaf([2, rows, 4, 16], 1, dtype),
        leaf([2, keys, groups, 16], 2, dtype),
        leaf([2, keys, groups, 16], 3, dtype),
      ];
      if (mask) inputs.push(seen(rows, keys, blind === true));
      if (bias) inputs.push(leaf([1, 4, rows, keys], 4, dtype));
      const run = (...[q, k, v, ...rest]: Tensor[]) =>
        troupe.maskedAttention(
          (q as Tensor).transpose(1, 2),
          (k as Tensor).transpose(1, 2),
          (v as Tensor).transpose(1, 2),
          mask ? rest[0] : undefined,
          bias ? rest.at(-1) : undefined,
          causal,
          window,
          0.3,
        );
      compare({ inputs, run, forward: 2 * near(dtype), backward: [8 * near(dtype)] });
    });

    it.each([
      [{ heads: 4, groups: 2, width: 12, window: 0 }],
      [{ heads: 3, groups: 3, width: 33, window: 5 }],
    ])("attend to pages, and write what came to them, to the bit: %j", ({ heads, groups, width, window }) => {
      // Three texts in six pages of two slabs, the second of which shares five positions of the first's.
      const table = tensor([0, 0, 3, 4, 5, 0, 5, -1, 0, 1, -1, -1], { dtype: "int64", shape: [3, 4] });
      const places = [12, 13, 14, 15, 16, 17, 9, 8, 0, 1].map((position, token) => [
        token < 6 ? 0 : token < 8 ? 1 : 2,
        position,
      ]);
      const [texts, positions] = [0, 1].map((of) =>
        tensor(
          places.map((place) => place[of] as number),
          { dtype: "int64" },
        ),
      ) as [Tensor, Tensor];
      const cut = (count: number, stream: number) =>
        normal([1, places.length, count, width], stream, { dtype, std: 2 });
      const slab = (stream: number, ...sizes: number[]) => normal([3, groups, ...sizes], stream, { dtype });
      compare({
        inputs: [
          ...[cut(heads, 1), cut(groups, 2), cut(groups, 3), table, texts, positions],
          ...[slab(4, width, 8), slab(5, width, 8), slab(6, 8, width), slab(7, 8, width)],
        ],
        run: (...given) => {
          const [q, k, v] = given.slice(0, 3).map((x) => x.transpose(1, 2)) as [Tensor, Tensor, Tensor];
          const [pages, ofText, at] = given.slice(3, 6) as [Tensor, Tensor, Tensor];
          const slabs = given.slice(6).map((x) => x.mul(1));
          const [keys, values] = [slabs.slice(0, 2), slabs.slice(2)];
          const attended = troupe.pagedAttention_(
            ...([q, k, v, keys, values, pages, ofText, at, undefined, undefined, window, 0.3] as const),
          );
          return [attended, ...slabs];
        },
        forward: "bits",
      });
    });

    it("attend to texts that others read, with a bias by distance, to the bit", () => {
      const [heads, groups, width] = [4, 2, 12];
      const table = tensor([0, 0, 3, 4, 0, 5, 1, -1], { dtype: "int64", shape: [2, 4] });
      // Three queries read all of the first text, two of the second; the first is written now, but for its end.
      const lengths = [19, 11];
      const texts = tensor([0, 1, 0, 0, 1], { dtype: "int64" });
      const positions = tensor([18, 10, 18, 18, 10], { dtype: "int64" });
      const given = Array.from({ length: 17 }, (_, place) => place);
      for (const numWritten of [17, 0]) {
        const written = tensor([...given.slice(0, numWritten).map(() => 0), ...given.slice(0, numWritten)], {
          dtype: "int64",
          shape: [2, numWritten],
        });
        const cut = (tokens: number, count: number, stream: number) =>
          normal([1, tokens, count, width], stream, { dtype, std: 2 });
        const slab = (stream: number, ...sizes: number[]) => normal([3, groups, ...sizes], stream, { dtype });
        for (const numDistances of [1, 6, Math.max(...lengths)])
          compare({
            inputs: [
              ...[cut(5, heads, 1), cut(numWritten, groups, 2), cut(numWritten, groups, 3)],
              ...[table, texts, positions, written, normal([heads, numDistances], 8, { std: 3 })],
              ...[slab(4, width, 8), slab(5, width, 8), slab(6, 8, width), slab(7, 8, width)],
            ],
            run: (...all) => {
              const [q, k, v] = all.slice(0, 3).map((x) => x.transpose(1, 2)) as [Tensor, Tensor, Tensor];
              const [pages, ofText, at, now, bias] = all.slice(3, 8) as [
                Tensor,
                Tensor,
                Tensor,
                Tensor,
                Tensor,
              ];
              const slabs = all.slice(8).map((x) => x.mul(1));
              const [keys, values] = [slabs.slice(0, 2), slabs.slice(2)];
              const attended = troupe.pagedAttention_(
                ...([q, k, v, keys, values, pages, ofText, at, now, bias, 0, 0.3] as const),
              );
              return [attended, ...slabs];
            },
            forward: "bits",
          });
      }
    });

    it("draw the tokens that the host draws", () => {
      for (const numClasses of [1, 7, 1000, hasGpu ? 50_257 : 2500]) {
        const logits = normal([5, numClasses], 1, { dtype, std: 3 });
        for (const [temperature, topK, topP] of [
          [0, 0, 1],
          [1, 0, 1],
          [0.7, 3, 1],
          [1.3, 0, 0.8],
          [1, 40, 0.95],
        ] as const)
          compare({
            inputs: [logits, tensor([0, 0.25, 0.5, 0.9, 0.999])],
            run: (x, uniforms) => troupe.drawTokens(x, uniforms, temperature, topK, topP),
            forward: "bits",
          });
      }
    });

    it("kernels find infinities and NaN at any place", () => {
      const fine = normal([1000], 1, { dtype });
      withKernels(() => expect(troupe.allFinite([onGpu(fine), onGpu(fine)])).toBe(true));
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        const spoiled = fine.mul(1);
        spoiled.narrow(0, 997, 1).fill_(bad);
        withKernels(() => expect(troupe.allFinite([onGpu(fine), onGpu(spoiled)])).toBe(false));
      }
    });

    it("take each optimizer's step as the host does, to the bit", () => {
      const numel = 1037;
      for (const low of [undefined, "bfloat16", "float16"] as const) {
        for (const [name, run] of Object.entries(steps)) {
          const given = [1, 2, 3, 4].map((stream) => normal([numel], stream));
          (given[2] as Tensor).square_();
          const grad = normal([numel], 5, { dtype });
          compare({
            inputs: [...given, grad],
            run: (...[p, m, v, d, g]: Tensor[]) => {
              const state = [p, m, v, d].map((t) => (t as Tensor).mul(1)) as State;
              const narrow = low === undefined ? undefined : (p as Tensor).to(low);
              run(state, g as Tensor, narrow);
              return narrow === undefined ? state : [...state, narrow];
            },
            forward: "bits",
          });
          expect(name).toBeTruthy();
        }
      }
    });
  });

  it("read on the device what a step's gradient is multiplied by, and whether it is left out", () => {
    const numel = 1037;
    for (const scale of [
      tensor([0.1 / 3, 0], { dtype: "float64" }),
      tensor([Number.NaN, 1], { dtype: "float64" }),
    ]) {
      for (const run of Object.values(steps).slice(0, 7)) {
        const given = [1, 2, 3, 4, 5].map((stream) => normal([numel], stream));
        (given[2] as Tensor).square_();
        compare({
          inputs: [...given, scale],
          run: (...[p, m, v, d, g, judged]: Tensor[]) => {
            const state = [p, m, v, d].map((t) => (t as Tensor).mul(1)) as State;
            const narrow = (p as Tensor).to("bfloat16");
            run(state, g as Tensor, narrow, judged);
            return [...state, narrow];
          },
          forward: "bits",
        });
      }
    }
  });

  it("make a step's scales of the sums of squares as the host does, to the bit", () => {
    const [members, chunks, kinds] = [3, [12_064, 1, 45], 2];
    const shares = normal([members * (kinds * 12_110 + 3)], 1)
      .to("float64")
      .mul(20)
      .exp();
    compare({
      inputs: [shares],
      run: (all) => {
        const squares = troupe.sumSquareSums(all, members, chunks, kinds);
        const ofParts = ops.cat([squares, squares.sqrt()]).reshape([2, kinds]);
        const spoiled = ofParts.mul(Number.POSITIVE_INFINITY);
        return [
          squares,
          troupe.gradientScales(ofParts, 3, [0.7, Number.POSITIVE_INFINITY], true),
          troupe.gradientScales(spoiled, 3, [0.7, Number.POSITIVE_INFINITY], true),
          troupe.gradientScales(spoiled, 3, [0.7, 1e-3], false),
        ];
      },
      forward: "bits",
    });
  });

  it("round by chance to the bit", () => {
    const values = ops.cat([
      normal([1003], 1, { std: 1e-6 }),
      normal([1003], 2),
      tensor([Number.POSITIVE_INFINITY, -0, 65520, 3.4e38]),
    ]);
    for (const dtype of ["bfloat16", "float16"] as const) {
      for (const offset of [0, 3, 2 ** 33]) {
        const run = (x: Tensor) => {
          const out = x.to(dtype);
          troupe.roundStochastic_(out, x, 5, 7, offset);
          return out;
        };
        compare({ inputs: [values], run, forward: "bits" });
      }
    }
  });

  it("find largest magnitudes and sums of squares that no order changes", () => {
    const flat = normal([100_003], 1);
    const ends = [0, 1, 70_000, 100_003];
    compare({ inputs: [flat], run: (x) => troupe.segmentMaxima(x, ends), forward: "bits" });
    compare({
      inputs: [flat],
      run: (x) => troupe.exactSquareSums(x, ends, [1, 50, 1e6, 1e5]),
      forward: "bits",
    });
    for (const [begin, numel] of [
      [0, 3 * 70 * 300],
      [301, 3 * 70 * 300 - 777],
      [5, 90],
    ] as const) {
      const run = (x: Tensor) => troupe.factoredSquareSums(x, [3, 70, 300], begin, 0.5, 1e6);
      compare({ inputs: [normal([numel], 2)], run, forward: "bits" });
    }
    const factors = [normal([5003], 3), normal([3 * 70], 4).abs(), normal([3 * 300], 5).abs()];
    const direct = (...[g, r, c]: Tensor[]) => {
      const out = (g as Tensor).mul(1);
      troupe.adafactorMatrix_(out, r as Tensor, c as Tensor, [3, 70, 300], 777, 0.5);
      return out;
    };
    compare({ inputs: factors, run: direct, forward: "bits" });
  });

  it("cut windows of tokens that lie on the GPU", () => {
    for (const dtype of ["uint8", "int16", "int32"] as const) {
      const tokens = tensor(
        Array.from({ length: 100 }, (_, i) => (dtype === "int16" ? i * 600 - 30_000 : i)),
        { dtype },
      );
      compare({ inputs: [tokens], run: (t) => troupe.tokenWindows(t, [0, 57, 89], 10), forward: "bits" });
    }
  });

  it("make the loss of a target that is no class NaN, for nothing is read back to refuse it", () => {
    const logits = normal([2, 5], 1);
    const targets = tensor([1, 5], { dtype: "int64" });
    withKernels(() => {
      expect(numbers(back(troupe.crossEntropy(onGpu(logits), onGpu(targets), -100)))).toEqual([Number.NaN]);
    });
  });

  it.skipIf(!hasGpu)(
    "sum rows as libtorch does but for the order, in any format, and each row by itself",
    () => {
      for (const dtype of ["float32", "bfloat16", "float16"] as const) {
        for (const shape of [
          [300, 7],
          [1000, 768],
          [3, 257, 64],
        ]) {
          const x = normal(shape, 1, { dtype });
          const rows = shape.slice(0, -1).map((_, dim) => dim);
          for (const keepDim of [false, true])
            expectLike(
              onGpu(x).sum(rows, keepDim),
              x.sum(rows, keepDim),
              Math.max(near(dtype), 1e-6),
              `${shape}`,
            );
          expectLike(onGpu(x).sum(rows, false, "float32"), x.sum(rows, false, "float32"), 1e-5, `${shape}`);
          expectLike(onGpu(x).sum([-1]), x.sum([-1]), Math.max(near(dtype), 1e-6), `${shape}`);
        }
      }
    },
  );

  it.skipIf(!hasGpu)("multiply float32 as float32", () => {
    const [a, b] = [normal([257, 1000], 1), normal([1000, 130], 2)];
    expectLike(onGpu(a).mm(onGpu(b)), a.to("float64").mm(b.to("float64")).to("float32"), 1e-6, "product");
  });
});

/** bool [2, 1, rows, keys]; one row sees nothing where `blind` is set. */
function seen(rows: number, keys: number, blind: boolean): Tensor {
  const bits = Array.from({ length: 2 * rows * keys }, (_, i) => {
    const row = Math.floor(i / keys);
    return (blind && row === 3) || (i * 31) % 7 < 2 ? 0 : 1;
  });
  for (let row = 0; row < 2 * rows; row++) if (!(blind && row === 3)) bits[row * keys] = 1;
  return tensor(bits, { shape: [2, 1, rows, keys], dtype: "float32" }).to("bool");
}

type State = [param: Tensor, first: Tensor, second: Tensor, direction: Tensor];

const ends = [3, 500, 501, 1037];
const rates = [1e-3, 2e-3, 0.5, 0.01];
const decays = [0, 0.1, 0.01, 0.3];

/** Each optimizer's kernel; what takes a float32 gradient only has the direction. */
const steps: Record<
  string,
  (state: State, grad: Tensor, narrow: Tensor | undefined, scale?: Tensor) => void
> = {
  adamw: ([p, m, v], g, low, scale) =>
    troupe.adamw_(p, m, v, g, low, ends, rates, decays, 0.9, 0.95, 1e-8, 3, 0.7, scale),
  adam: ([p, m, v], g, low, scale) =>
    troupe.adam_(p, m, v, g, low, ends, rates, decays, 0.9, 0.95, 1e-8, 1, 1, scale),
  bmtrainAdam: ([p, m, v], g, low, scale) =>
    troupe.bmtrainAdam_(p, m, v, g, low, ends, rates, decays, 0.9, 0.98, 1e-8, 9, 0.5, scale),
  sgd: ([p], g, low, scale) =>
    troupe.sgd_(p, undefined, g, low, ends, rates, decays, 0, 0, false, 1, 0.7, scale),
  momentum: ([p, m], g, low, scale) =>
    troupe.sgd_(p, m, g, low, ends, rates, decays, 0.9, 0.1, false, 2, 0.7, scale),
  nesterov: ([p, m], g, low, scale) =>
    troupe.sgd_(p, m, g, low, ends, rates, decays, 0.9, 0, true, 1, 0.7, scale),
  lion: ([p, m], g, low, scale) => troupe.lion_(p, m, g, low, ends, rates, decays, 0.9, 0.99, 0.7, scale),
  lamb: ([p, m, v, d]) => troupe.lambDirection_(d, p, m, v, ends, decays, 0.9, 0.999, 1e-6, 4, 0.7),
  along: ([p, , , d], _, low) => troupe.stepAlong_(p, d, low, ends, rates, decays),
  blend: ([, m, , d]) => troupe.blendDirection_(d, m, ends, rates, 0.9),
  adafactorVector: ([, , v, d]) => troupe.adafactorVector_(d, v, 0.99, 1e-30, 0.7),
};
