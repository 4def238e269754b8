/** Prints a digest of every kernel's results at awkward sizes, one line of JSON: run with different TROUPE_ISA, they must be equal. */
import { createHash } from "node:crypto";
import {
  empty,
  nativeInfo,
  ops,
  setInvariant,
  setNumThreads,
  type Tensor,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { floatTypes, gradientsOf, normal } from "./inputs.ts";

setNumThreads(1);
const digests: Record<string, string> = { capability: nativeInfo().capability };

function digest(name: string, results: readonly Tensor[]): void {
  const hash = createHash("sha256");
  for (const result of results) {
    const array = result.detach().contiguous().toTypedArray();
    hash.update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  }
  digests[name] = hash.digest("hex");
}

for (const dtype of floatTypes) {
  for (const numel of [0, 1, 17, 1023, 1025, 5003]) {
    const given = normal([numel], 1, { dtype });
    const [param, m, v] = [normal([numel], 2), zeros([numel]), zeros([numel])];
    const low = empty([numel], { dtype: "bfloat16" });
    const half = Math.floor(numel / 2);
    for (let step = 1; step <= 3; step++) {
      ops.troupe.adamw_(
        param,
        m,
        v,
        given,
        low,
        [half, numel],
        [1e-2, 3e-3],
        [0.1, 0],
        0.9,
        0.95,
        1e-8,
        step,
        0.3,
      );
    }
    digest(`adamw ${dtype} ${numel}`, [param, m, v, low]);
    for (const step of [ops.troupe.adam_, ops.troupe.bmtrainAdam_]) {
      step(param, m, v, given, low, [half, numel], [1e-2, 3e-3], [0.1, 0], 0.9, 0.95, 1e-8, 4, 0.3);
    }
    digest(`adam, bmtrain_adam ${dtype} ${numel}`, [param, m, v, low]);
    const momenta = [undefined, m, m] as const;
    momenta.forEach((momentum, index) => {
      const nesterov = index === 2;
      ops.troupe.sgd_(param, momentum, given, low, [numel], [1e-2], [0.1], 0.9, 0.1, nesterov, 2, 0.3);
    });
    ops.troupe.lion_(param, m, given, low, [half, numel], [1e-2, 3e-3], [0.1, 0], 0.9, 0.99, 0.3);
    digest(`sgd, lion ${dtype} ${numel}`, [param, m, low]);
    ops.troupe.stepAlong_(param, given, low, [half, numel], [0.3, 0.1], [0.9, 1]);
    digest(`step_along ${dtype} ${numel}`, [param, low]);
    digest(`chunk_square_sums ${dtype} ${numel}`, [ops.troupe.chunkSquareSums(given)]);
    const out = zeros([numel]);
    ops.troupe.reduceRanks_(out, [given, given, normal([numel], 3)], 0);
    ops.troupe.collectGradients_(out, [given], [0], true);
    digest(`reduce_ranks, collect_gradients ${dtype} ${numel}`, [out]);
    if (dtype !== "float32") {
      const rounded = empty([numel], { dtype });
      ops.troupe.roundStochastic_(rounded, normal([numel], 5, { std: 1e-3 }), 1, 2, 3);
      digest(`round_stochastic ${dtype} ${numel}`, [rounded]);
    }
    digest(`dropout ${dtype} ${numel}`, [ops.troupe.dropout(given, 0.3, 1, 2, 3, Math.max(1, numel), 0)]);
    digest(`philox ${dtype} ${numel}`, [
      ops.troupe.philoxNormal_(empty([numel], { dtype }), 0.5, 2, 1, 2, 3),
      ops.troupe.philoxUniform_(empty([numel], { dtype }), -1, 2, 1, 2, 3),
    ]);
  }
  for (const [rows, dim] of [
    [1, 1],
    [5, 7],
    [40, 33],
    [3, 1025],
  ] as const) {
    const x = normal([rows, dim], 1, { dtype }).requiresGrad_();
    const weight = normal([dim], 2, { dtype }).requiresGrad_();
    const bias = normal([dim], 3, { dtype }).requiresGrad_();
    const gradient = normal([rows, dim], 4, { dtype });
    const [sum, normed] = ops.troupe.addLayerNorm(x, gradient, weight, bias, 1e-5);
    const normGradients = gradientsOf([sum, normed], [x, weight, bias], [gradient, gradient]);
    digest(`add_layer_norm ${dtype} ${rows}x${dim}`, [sum, normed, ...normGradients]);
    for (const form of ["tanh", "none"]) {
      const active = ops.troupe.biasGelu(x, bias, form);
      digest(`bias_gelu ${form} ${dtype} ${rows}x${dim}`, [
        active,
        ...gradientsOf([active], [x, bias], [gradient]),
      ]);
    }
    const [rmsSum, rmsNormed] = ops.troupe.addRmsNorm(x, gradient, weight, 1e-6);
    const rmsGradients = gradientsOf([rmsSum, rmsNormed], [x, weight], [gradient, gradient]);
    digest(`add_rms_norm ${dtype} ${rows}x${dim}`, [rmsSum, rmsNormed, ...rmsGradients]);
    const up = normal([rows, dim], 7, { dtype }).requiresGrad_();
    const opened = ops.troupe.swiglu(x, up);
    digest(`swiglu ${dtype} ${rows}x${dim}`, [opened, ...gradientsOf([opened], [x, up], [gradient])]);
    const angles = normal([rows, Math.floor(dim / 2)], 8);
    const turned = ops.troupe.rotary(x.view([1, 1, rows, dim]), angles.cos(), angles.sin());
    digest(`rotary ${dtype} ${rows}x${dim}`, [
      turned,
      ...gradientsOf([turned], [x], [gradient.view([1, 1, rows, dim])]),
    ]);
    const keys = normal([1, 1, dim, 8], 9, { dtype: "float32" }).requiresGrad_();
    const added = normal([1, 1, rows, dim], 10).requiresGrad_();
    const queries = normal([1, 2, rows, 8], 11).requiresGrad_();
    const seen = normal([1, 1, 1, dim], 12).gt(-1);
    const mixed = ops.troupe.maskedAttention(queries, keys, keys, seen, added, false, 0, 0.3);
    const mixedGradients = gradientsOf([mixed], [queries, keys, added], [normal(mixed.shape, 13)]);
    digest(`masked_attention ${rows}x${dim}`, [mixed, ...mixedGradients]);
    const place = [0.3, 7, 3, 0, 2 * rows * dim, 2 * rows * dim] as const;
    const dropped = ops.troupe.droppedAttention(queries, keys, keys, seen, added, false, 0, 0.3, ...place);
    const droppedGradients = gradientsOf([dropped], [queries, keys, added], [normal(dropped.shape, 13)]);
    digest(`dropped_attention ${rows}x${dim}`, [dropped, ...droppedGradients]);
    const targets = tensor(BigInt64Array.from({ length: rows }, (_, row) => BigInt((row * 31) % dim)));
    const loss = ops.troupe.crossEntropy(x, targets, -100);
    digest(`cross_entropy ${dtype} ${rows}x${dim}`, [loss, ...gradientsOf([loss], [x], [tensor(1)])]);
    const logits = x.detach().clone();
    const classes = normal([dim], 5).abs();
    const statistics = ops.troupe.vocabularyStatistics(logits, targets, 0, dim, -100, classes);
    const logsumexp = statistics.select(0, 0).add(statistics.select(0, 1).log());
    const coefficients = normal([3, rows], 6);
    ops.troupe.vocabularyGradient_(logits, logsumexp, targets, 0, coefficients, classes);
    digest(`vocabulary ${dtype} ${rows}x${dim}`, [statistics, logits]);
    const uniforms = normal([rows], 14).mul(0.1).add(0.5).clamp(0, 0.999);
    digest(
      `draw_tokens ${dtype} ${rows}x${dim}`,
      (
        [
          [1, 0, 1],
          [0.8, 5, 1],
          [1, 0, 0.7],
        ] as const
      ).map(([temperature, topK, topP]) =>
        ops.troupe.drawTokens(x.detach(), uniforms, temperature, topK, topP),
      ),
    );
    const integers = (values: number[]) => tensor(BigInt64Array.from(values, BigInt));
    const numbers = Array.from({ length: rows }, (_, row) => row);
    const [pages, width] = [Math.ceil(rows / 8), Math.min(dim, 33)];
    const heads = x.detach().narrow(1, 0, width).view([1, 1, rows, width]);
    const slabs = [empty([pages, 1, width, 8], { dtype }), empty([pages, 1, 8, width], { dtype })] as const;
    const attended = ops.troupe.pagedAttention_(
      ...([heads, heads, heads, [slabs[0].fill_(0)], [slabs[1].fill_(0)]] as const),
      integers([0, ...numbers.slice(0, pages).reverse()]).view([1, 1 + pages]),
      ...([integers(numbers.map(() => 0)), integers(numbers), undefined, undefined, 7, 0.3] as const),
    );
    digest(`paged_attention ${dtype} ${rows}x${dim}`, [attended, ...slabs]);
  }
}
for (const numel of [0, 1, 17, 1023, 5003]) {
  const [direction, param, m, v] = [1, 2, 3, 4].map((stream) => normal([numel], stream).abs());
  if (!direction || !param || !m || !v) break;
  ops.troupe.lambDirection_(direction, param, m, v, [numel], [0.1], 0.9, 0.99, 1e-6, 3, 0.5);
  ops.troupe.blendDirection_(direction, m, [numel], [0.3], 0.9);
  ops.troupe.adafactorVector_(direction, v, 0.9, 1e-30, 0.5);
  ops.troupe.adafactorMatrix_(direction, m.add(1), normal([1], 5), [1, numel, 1], 0, 0.5);
  digest(`lamb, adafactor ${numel}`, [direction, m, v]);
  const rows = Math.ceil(numel / 7);
  const [ofRows, ofColumns] = ops.troupe.factoredSquareSums(direction, [1, rows, 7], 0, 0.5, 1e6);
  digest(`sums of squares ${numel}`, [
    ofRows,
    ofColumns,
    ops.troupe.segmentMaxima(direction, [0, numel]),
    ops.troupe.exactSquareSums(direction, [0, numel], [0, 1e6]),
  ]);
}
// On AMD with AVX-512 these products are ours, with less than AVX-512 libtorch's.
for (const [rows, inner, columns] of [
  [16, 4, 16],
  [61, 193, 47],
  [17, 300, 64],
  [64, 256, 33],
  [31, 550, 18],
  [257, 64, 192],
  [130, 512, 65],
  [384, 200, 128],
] as const) {
  const wide = normal([inner + 3, rows], 1).narrow(0, 2, inner);
  const lefts = [normal([rows, inner], 1), wide.t()];
  const rights = [normal([inner, columns], 2), normal([columns, inner], 2).t()];
  const biases = [normal([columns], 3), normal([rows, columns], 3)];
  const products = lefts.flatMap((a) =>
    rights.flatMap((b) => [a.mm(b), ...biases.map((bias) => ops.addmm(bias, a, b))]),
  );
  const [a, b] = [normal([5, inner, rows], 4), normal([5, columns, inner], 5)];
  digest(`products ${rows}x${inner}x${columns}`, [...products, a.transpose(1, 2).bmm(b.transpose(1, 2))]);
}
setInvariant(true);
for (const dtype of floatTypes) {
  for (const [rows, inner, columns] of [
    [1, 1, 1],
    [13, 200, 65],
    [100, 31, 400],
  ] as const) {
    const [a, b] = [normal([rows, inner], 1, { dtype }), normal([columns, inner], 2, { dtype })];
    digest(`invariant products ${dtype} ${rows}x${inner}x${columns}`, [
      ops.addmm(normal([columns], 3, { dtype }), a, b.t()),
    ]);
    const [q, k] = [normal([1, 4, rows, 12], 4, { dtype }), normal([1, 2, rows, 12], 5, { dtype })];
    digest(`invariant attention ${dtype} ${rows}`, [
      ops.troupe.maskedAttention(q, k, k, undefined, undefined, true, 7, 0.3),
    ]);
  }
}
console.log(JSON.stringify(digests));
