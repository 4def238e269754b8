// Written by scripts/generate-ops.ts from scripts/operators/operators.txt and the schemas of libtorch 2.13.0.

import { type DType, dtypeCode } from "./dtype.ts";
import { call, frame, handleOf, intern, putNumbers, putOptionalTensors, putTensors } from "./frame.ts";
import { adopt, adoptAt, adoptList, type Tensor } from "./tensor.ts";

/**
 * One AdamW step over a flat buffer: unscale and clip by gradScale, update the moments and the parameters, write the low-precision copy (Loshchilov & Hutter 2017).
 *
 * `troupe::adamw_(Tensor(a!) param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor grad, Tensor(d!)? low_precision, int[] segment_ends, float[] learning_rates, float[] weight_decays, float beta1, float beta2, float eps, int step, float grad_scale, Tensor? scale=None) -> ()`
 */
export function adamw_(param: Tensor, expAvg: Tensor, expAvgSq: Tensor, grad: Tensor, lowPrecision: Tensor | undefined, segmentEnds: readonly number[], learningRates: readonly number[], weightDecays: readonly number[], beta1: number, beta2: number, eps: number, step: number, gradScale: number, scale?: Tensor): void {
  frame[0] = handleOf(param, "adamw_", "param");
  frame[1] = handleOf(expAvg, "adamw_", "expAvg");
  frame[2] = handleOf(expAvgSq, "adamw_", "expAvgSq");
  frame[3] = handleOf(grad, "adamw_", "grad");
  frame[4] = lowPrecision === undefined ? 0 : 1;
  frame[5] = lowPrecision === undefined ? 0 : handleOf(lowPrecision, "adamw_", "lowPrecision");
  let next = putNumbers(6, segmentEnds, "adamw_", "segmentEnds");
  next = putNumbers(next, learningRates, "adamw_", "learningRates");
  next = putNumbers(next, weightDecays, "adamw_", "weightDecays");
  frame[next] = beta1;
  frame[next + 1] = beta2;
  frame[next + 2] = eps;
  frame[next + 3] = step;
  frame[next + 4] = gradScale;
  frame[next + 5] = scale === undefined ? 0 : 1;
  frame[next + 6] = scale === undefined ? 0 : handleOf(scale, "adamw_", "scale");
  call(337);
}

/**
 * The same step with decay added to the gradient, as torch.optim.Adam (Kingma & Ba 2014).
 *
 * `troupe::adam_(Tensor(a!) param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor grad, Tensor(d!)? low_precision, int[] segment_ends, float[] learning_rates, float[] weight_decays, float beta1, float beta2, float eps, int step, float grad_scale, Tensor? scale=None) -> ()`
 */
export function adam_(param: Tensor, expAvg: Tensor, expAvgSq: Tensor, grad: Tensor, lowPrecision: Tensor | undefined, segmentEnds: readonly number[], learningRates: readonly number[], weightDecays: readonly number[], beta1: number, beta2: number, eps: number, step: number, gradScale: number, scale?: Tensor): void {
  frame[0] = handleOf(param, "adam_", "param");
  frame[1] = handleOf(expAvg, "adam_", "expAvg");
  frame[2] = handleOf(expAvgSq, "adam_", "expAvgSq");
  frame[3] = handleOf(grad, "adam_", "grad");
  frame[4] = lowPrecision === undefined ? 0 : 1;
  frame[5] = lowPrecision === undefined ? 0 : handleOf(lowPrecision, "adam_", "lowPrecision");
  let next = putNumbers(6, segmentEnds, "adam_", "segmentEnds");
  next = putNumbers(next, learningRates, "adam_", "learningRates");
  next = putNumbers(next, weightDecays, "adam_", "weightDecays");
  frame[next] = beta1;
  frame[next + 1] = beta2;
  frame[next + 2] = eps;
  frame[next + 3] = step;
  frame[next + 4] = gradScale;
  frame[next + 5] = scale === undefined ? 0 : 1;
  frame[next + 6] = scale === undefined ? 0 : handleOf(scale, "adam_", "scale");
  call(338);
}

/**
 * The same step in the order of BMTrain's kernels for half precision: decoupled decay of the old value.
 *
 * `troupe::bmtrain_adam_(Tensor(a!) param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor grad, Tensor(d!)? low_precision, int[] segment_ends, float[] learning_rates, float[] weight_decays, float beta1, float beta2, float eps, int step, float grad_scale, Tensor? scale=None) -> ()`
 */
export function bmtrainAdam_(param: Tensor, expAvg: Tensor, expAvgSq: Tensor, grad: Tensor, lowPrecision: Tensor | undefined, segmentEnds: readonly number[], learningRates: readonly number[], weightDecays: readonly number[], beta1: number, beta2: number, eps: number, step: number, gradScale: number, scale?: Tensor): void {
  frame[0] = handleOf(param, "bmtrainAdam_", "param");
  frame[1] = handleOf(expAvg, "bmtrainAdam_", "expAvg");
  frame[2] = handleOf(expAvgSq, "bmtrainAdam_", "expAvgSq");
  frame[3] = handleOf(grad, "bmtrainAdam_", "grad");
  frame[4] = lowPrecision === undefined ? 0 : 1;
  frame[5] = lowPrecision === undefined ? 0 : handleOf(lowPrecision, "bmtrainAdam_", "lowPrecision");
  let next = putNumbers(6, segmentEnds, "bmtrainAdam_", "segmentEnds");
  next = putNumbers(next, learningRates, "bmtrainAdam_", "learningRates");
  next = putNumbers(next, weightDecays, "bmtrainAdam_", "weightDecays");
  frame[next] = beta1;
  frame[next + 1] = beta2;
  frame[next + 2] = eps;
  frame[next + 3] = step;
  frame[next + 4] = gradScale;
  frame[next + 5] = scale === undefined ? 0 : 1;
  frame[next + 6] = scale === undefined ? 0 : handleOf(scale, "bmtrainAdam_", "scale");
  call(339);
}

/**
 * One SGD step over a flat buffer, with momentum, dampening and Nesterov's form, as torch.optim.SGD.
 *
 * `troupe::sgd_(Tensor(a!) param, Tensor(b!)? momentum_buffer, Tensor grad, Tensor(c!)? low_precision, int[] segment_ends, float[] learning_rates, float[] weight_decays, float momentum, float dampening, bool nesterov, int step, float grad_scale, Tensor? scale=None) -> ()`
 */
export function sgd_(param: Tensor, momentumBuffer: Tensor | undefined, grad: Tensor, lowPrecision: Tensor | undefined, segmentEnds: readonly number[], learningRates: readonly number[], weightDecays: readonly number[], momentum: number, dampening: number, nesterov: boolean, step: number, gradScale: number, scale?: Tensor): void {
  frame[0] = handleOf(param, "sgd_", "param");
  frame[1] = momentumBuffer === undefined ? 0 : 1;
  frame[2] = momentumBuffer === undefined ? 0 : handleOf(momentumBuffer, "sgd_", "momentumBuffer");
  frame[3] = handleOf(grad, "sgd_", "grad");
  frame[4] = lowPrecision === undefined ? 0 : 1;
  frame[5] = lowPrecision === undefined ? 0 : handleOf(lowPrecision, "sgd_", "lowPrecision");
  let next = putNumbers(6, segmentEnds, "sgd_", "segmentEnds");
  next = putNumbers(next, learningRates, "sgd_", "learningRates");
  next = putNumbers(next, weightDecays, "sgd_", "weightDecays");
  frame[next] = momentum;
  frame[next + 1] = dampening;
  frame[next + 2] = nesterov ? 1 : 0;
  frame[next + 3] = step;
  frame[next + 4] = gradScale;
  frame[next + 5] = scale === undefined ? 0 : 1;
  frame[next + 6] = scale === undefined ? 0 : handleOf(scale, "sgd_", "scale");
  call(340);
}

/**
 * One Lion step over a flat buffer (Chen et al. 2023).
 *
 * `troupe::lion_(Tensor(a!) param, Tensor(b!) exp_avg, Tensor grad, Tensor(c!)? low_precision, int[] segment_ends, float[] learning_rates, float[] weight_decays, float beta1, float beta2, float grad_scale, Tensor? scale=None) -> ()`
 */
export function lion_(param: Tensor, expAvg: Tensor, grad: Tensor, lowPrecision: Tensor | undefined, segmentEnds: readonly number[], learningRates: readonly number[], weightDecays: readonly number[], beta1: number, beta2: number, gradScale: number, scale?: Tensor): void {
  frame[0] = handleOf(param, "lion_", "param");
  frame[1] = handleOf(expAvg, "lion_", "expAvg");
  frame[2] = handleOf(grad, "lion_", "grad");
  frame[3] = lowPrecision === undefined ? 0 : 1;
  frame[4] = lowPrecision === undefined ? 0 : handleOf(lowPrecision, "lion_", "lowPrecision");
  let next = putNumbers(5, segmentEnds, "lion_", "segmentEnds");
  next = putNumbers(next, learningRates, "lion_", "learningRates");
  next = putNumbers(next, weightDecays, "lion_", "weightDecays");
  frame[next] = beta1;
  frame[next + 1] = beta2;
  frame[next + 2] = gradScale;
  frame[next + 3] = scale === undefined ? 0 : 1;
  frame[next + 4] = scale === undefined ? 0 : handleOf(scale, "lion_", "scale");
  call(341);
}

/**
 * Updates the moments and overwrites the gradient by LAMB's direction, decay included (You et al. 2019).
 *
 * `troupe::lamb_direction_(Tensor(a!) grad, Tensor param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, int[] segment_ends, float[] weight_decays, float beta1, float beta2, float eps, int step, float grad_scale) -> ()`
 */
export function lambDirection_(grad: Tensor, param: Tensor, expAvg: Tensor, expAvgSq: Tensor, segmentEnds: readonly number[], weightDecays: readonly number[], beta1: number, beta2: number, eps: number, step: number, gradScale: number): void {
  frame[0] = handleOf(grad, "lambDirection_", "grad");
  frame[1] = handleOf(param, "lambDirection_", "param");
  frame[2] = handleOf(expAvg, "lambDirection_", "expAvg");
  frame[3] = handleOf(expAvgSq, "lambDirection_", "expAvgSq");
  let next = putNumbers(4, segmentEnds, "lambDirection_", "segmentEnds");
  next = putNumbers(next, weightDecays, "lambDirection_", "weightDecays");
  frame[next] = beta1;
  frame[next + 1] = beta2;
  frame[next + 2] = eps;
  frame[next + 3] = step;
  frame[next + 4] = gradScale;
  call(342);
}

/**
 * Updates the second moment of every element and overwrites the gradient by Adafactor's direction (Shazeer & Stern 2018).
 *
 * `troupe::adafactor_vector_(Tensor(a!) grad, Tensor(b!) exp_avg_sq, float beta2, float eps, float grad_scale) -> ()`
 */
export function adafactorVector_(grad: Tensor, expAvgSq: Tensor, beta2: number, eps: number, gradScale: number): void {
  frame[0] = handleOf(grad, "adafactorVector_", "grad");
  frame[1] = handleOf(expAvgSq, "adafactorVector_", "expAvgSq");
  frame[2] = beta2;
  frame[3] = eps;
  frame[4] = gradScale;
  call(343);
}

/**
 * Overwrites the gradient by Adafactor's direction: rowFactors[row] · columnFactors[column] · gradient.
 *
 * `troupe::adafactor_matrix_(Tensor(a!) grad, Tensor row_factors, Tensor column_factors, int[] shape, int begin, float grad_scale) -> ()`
 */
export function adafactorMatrix_(grad: Tensor, rowFactors: Tensor, columnFactors: Tensor, shape: readonly number[], begin: number, gradScale: number): void {
  frame[0] = handleOf(grad, "adafactorMatrix_", "grad");
  frame[1] = handleOf(rowFactors, "adafactorMatrix_", "rowFactors");
  frame[2] = handleOf(columnFactors, "adafactorMatrix_", "columnFactors");
  const next = putNumbers(3, shape, "adafactorMatrix_", "shape");
  frame[next] = begin;
  frame[next + 1] = gradScale;
  call(344);
}

/**
 * direction = expAvg = beta · expAvg + (1 − beta) · rate · direction, by segment.
 *
 * `troupe::blend_direction_(Tensor(a!) direction, Tensor(b!) exp_avg, int[] segment_ends, float[] rates, float beta) -> ()`
 */
export function blendDirection_(direction: Tensor, expAvg: Tensor, segmentEnds: readonly number[], rates: readonly number[], beta: number): void {
  frame[0] = handleOf(direction, "blendDirection_", "direction");
  frame[1] = handleOf(expAvg, "blendDirection_", "expAvg");
  let next = putNumbers(2, segmentEnds, "blendDirection_", "segmentEnds");
  next = putNumbers(next, rates, "blendDirection_", "rates");
  frame[next] = beta;
  call(345);
}

/**
 * param = keep · param − rate · direction, by segment, and the low-precision copy.
 *
 * `troupe::step_along_(Tensor(a!) param, Tensor direction, Tensor(b!)? low_precision, int[] segment_ends, float[] rates, float[] keeps) -> ()`
 */
export function stepAlong_(param: Tensor, direction: Tensor, lowPrecision: Tensor | undefined, segmentEnds: readonly number[], rates: readonly number[], keeps: readonly number[]): void {
  frame[0] = handleOf(param, "stepAlong_", "param");
  frame[1] = handleOf(direction, "stepAlong_", "direction");
  frame[2] = lowPrecision === undefined ? 0 : 1;
  frame[3] = lowPrecision === undefined ? 0 : handleOf(lowPrecision, "stepAlong_", "lowPrecision");
  let next = putNumbers(4, segmentEnds, "stepAlong_", "segmentEnds");
  next = putNumbers(next, rates, "stepAlong_", "rates");
  putNumbers(next, keeps, "stepAlong_", "keeps");
  call(346);
}

/**
 * Largest magnitude of each segment, float64.
 *
 * `troupe::segment_maxima(Tensor flat, int[] ends) -> Tensor`
 */
export function segmentMaxima(flat: Tensor, ends: readonly number[]): Tensor {
  frame[0] = handleOf(flat, "segmentMaxima", "flat");
  putNumbers(1, ends, "segmentMaxima", "ends");
  return adopt(call(347));
}

/**
 * Sum of squares of each segment as two float64 parts, [segments, 2], whose sums over slices do not depend on their order.
 *
 * `troupe::exact_square_sums(Tensor flat, int[] ends, float[] bounds) -> Tensor`
 */
export function exactSquareSums(flat: Tensor, ends: readonly number[], bounds: readonly number[]): Tensor {
  frame[0] = handleOf(flat, "exactSquareSums", "flat");
  const next = putNumbers(1, ends, "exactSquareSums", "ends");
  putNumbers(next, bounds, "exactSquareSums", "bounds");
  return adopt(call(348));
}

/**
 * Sums of squares over rows [rows, 2] and columns [2, columns] of a slice of matrices, in two parts each.
 *
 * `troupe::factored_square_sums(Tensor grad, int[] shape, int begin, float scale, float bound) -> (Tensor rows, Tensor columns)`
 */
export function factoredSquareSums(grad: Tensor, shape: readonly number[], begin: number, scale: number, bound: number): [rows: Tensor, columns: Tensor] {
  frame[0] = handleOf(grad, "factoredSquareSums", "grad");
  const next = putNumbers(1, shape, "factoredSquareSums", "shape");
  frame[next] = begin;
  frame[next + 1] = scale;
  frame[next + 2] = bound;
  call(349);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Sum of squares of every 1024 elements, float64, the same bits on every machine.
 *
 * `troupe::chunk_square_sums(Tensor flat) -> Tensor`
 */
export function chunkSquareSums(flat: Tensor): Tensor {
  frame[0] = handleOf(flat, "chunkSquareSums", "flat");
  return adopt(call(350));
}

/**
 * Adds up, of each kind, what `members` rows of `shares` hold: block after block of `chunks` sums, member after member.
 *
 * `troupe::sum_square_sums(Tensor shares, int members, int[] chunks, int kinds) -> Tensor`
 */
export function sumSquareSums(shares: Tensor, members: number, chunks: readonly number[], kinds: number): Tensor {
  frame[0] = handleOf(shares, "sumSquareSums", "shares");
  frame[1] = members;
  const next = putNumbers(2, chunks, "sumSquareSums", "chunks");
  frame[next] = kinds;
  return adopt(call(351));
}

/**
 * Of each kind, what the summed gradient is multiplied by to be the clipped average, and 1 where the step is to be left out: float64 [kinds, 2], for the steps that take it as their `scale`.
 *
 * `troupe::gradient_scales(Tensor squares, float divisor, float[] limits, bool leaves_out) -> Tensor`
 */
export function gradientScales(squares: Tensor, divisor: number, limits: readonly number[], leavesOut: boolean): Tensor {
  frame[0] = handleOf(squares, "gradientScales", "squares");
  frame[1] = divisor;
  const next = putNumbers(2, limits, "gradientScales", "limits");
  frame[next] = leavesOut ? 1 : 0;
  return adopt(call(352));
}

/**
 * out[i] = Σ sources[·][begin + i] in list order, float32; squares: the sum of squares of each 1,024 of them, float64.
 *
 * `troupe::reduce_ranks_(Tensor(a!) out, Tensor[] sources, int begin, Tensor(b!)? squares=None) -> ()`
 */
export function reduceRanks_(out: Tensor, sources: readonly Tensor[], begin: number, squares?: Tensor): void {
  frame[0] = handleOf(out, "reduceRanks_", "out");
  const next = putTensors(1, sources, "reduceRanks_", "sources");
  frame[next] = begin;
  frame[next + 1] = squares === undefined ? 0 : 1;
  frame[next + 2] = squares === undefined ? 0 : handleOf(squares, "reduceRanks_", "squares");
  call(353);
}

/**
 * A tensor without memory: it has a shape and a dtype, and computing with it gives others like it.
 *
 * `troupe::placeholder(int[] size, ScalarType dtype) -> Tensor`
 */
export function placeholder(size: readonly number[], dtype: DType): Tensor {
  const next = putNumbers(0, size, "placeholder", "size");
  frame[next] = dtypeCode(dtype);
  return adopt(call(354));
}

/**
 * x itself; its gradient is kept under `id` on its way back, summed over all walks of the graph.
 *
 * `troupe::observe(Tensor x, int id) -> Tensor`
 */
export function observe(x: Tensor, id: number): Tensor {
  frame[0] = handleOf(x, "observe", "x");
  frame[1] = id;
  return adopt(call(355));
}

/**
 * The gradient kept under `id`, given up; none where none has come back.
 *
 * `troupe::observed(int id) -> Tensor[]`
 */
export function observed(id: number): Tensor[] {
  frame[0] = id;
  return adoptList(call(356));
}

/**
 * Gathers gradients into a flat buffer at offsets; a missing one is zero, or left when accumulating.
 *
 * `troupe::collect_gradients_(Tensor(a!) flat, Tensor?[] gradients, int[] offsets, bool accumulate) -> ()`
 */
export function collectGradients_(flat: Tensor, gradients: readonly (Tensor | undefined)[], offsets: readonly number[], accumulate: boolean): void {
  frame[0] = handleOf(flat, "collectGradients_", "flat");
  let next = putOptionalTensors(1, gradients, "collectGradients_", "gradients");
  next = putNumbers(next, offsets, "collectGradients_", "offsets");
  frame[next] = accumulate ? 1 : 0;
  call(357);
}

/**
 * sum += a @ b, for a float32 sum and factors of bfloat16 or float16: the product is added in float32, unrounded where the processor or the GPU can.
 *
 * `troupe::add_product_(Tensor(a!) sum, Tensor a, Tensor b) -> ()`
 */
export function addProduct_(sum: Tensor, a: Tensor, b: Tensor): void {
  frame[0] = handleOf(sum, "addProduct_", "sum");
  frame[1] = handleOf(a, "addProduct_", "a");
  frame[2] = handleOf(b, "addProduct_", "b");
  call(358);
}

/**
 * Uniform in [low, high); element i depends on (seed, stream, offset + i) alone (Salmon et al. 2011).
 *
 * `troupe::philox_uniform_(Tensor(a!) self, float low, float high, int seed, int stream, int offset) -> Tensor(a!)`
 */
export function philoxUniform_(self: Tensor, low: number, high: number, seed: number, stream: number, offset: number): Tensor {
  frame[0] = handleOf(self, "philoxUniform_", "self");
  frame[1] = low;
  frame[2] = high;
  frame[3] = seed;
  frame[4] = stream;
  frame[5] = offset;
  call(359);
  return self;
}

/**
 * Normal of mean and std; element i depends on (seed, stream, offset + i) alone (Salmon et al. 2011).
 *
 * `troupe::philox_normal_(Tensor(a!) self, float mean, float std, int seed, int stream, int offset) -> Tensor(a!)`
 */
export function philoxNormal_(self: Tensor, mean: number, std: number, seed: number, stream: number, offset: number): Tensor {
  frame[0] = handleOf(self, "philoxNormal_", "self");
  frame[1] = mean;
  frame[2] = std;
  frame[3] = seed;
  frame[4] = stream;
  frame[5] = offset;
  call(360);
  return self;
}

/**
 * Zeroes elements with probability p and scales the rest by 1/(1 − p); element i stands at place offset + ⌊i / run⌋ · stride + i mod run and is masked again in backward.
 *
 * `troupe::dropout(Tensor x, float p, int seed, int stream, int offset, int run, int stride) -> Tensor`
 */
export function dropout(x: Tensor, p: number, seed: number, stream: number, offset: number, run: number, stride: number): Tensor {
  frame[0] = handleOf(x, "dropout", "x");
  frame[1] = p;
  frame[2] = seed;
  frame[3] = stream;
  frame[4] = offset;
  frame[5] = run;
  frame[6] = stride;
  return adopt(call(361));
}

/**
 * Layer norm over the last dim with float32 statistics (Ba et al. 2016).
 *
 * `troupe::layer_norm(Tensor x, Tensor weight, Tensor? bias, float eps) -> Tensor`
 */
export function layerNorm(x: Tensor, weight: Tensor, bias: Tensor | undefined, eps: number): Tensor {
  frame[0] = handleOf(x, "layerNorm", "x");
  frame[1] = handleOf(weight, "layerNorm", "weight");
  frame[2] = bias === undefined ? 0 : 1;
  frame[3] = bias === undefined ? 0 : handleOf(bias, "layerNorm", "bias");
  frame[4] = eps;
  return adopt(call(362));
}

/**
 * sum = x + residual, and its layer norm, in one pass.
 *
 * `troupe::add_layer_norm(Tensor x, Tensor residual, Tensor weight, Tensor? bias, float eps) -> (Tensor sum, Tensor normed)`
 */
export function addLayerNorm(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor | undefined, eps: number): [sum: Tensor, normed: Tensor] {
  frame[0] = handleOf(x, "addLayerNorm", "x");
  frame[1] = handleOf(residual, "addLayerNorm", "residual");
  frame[2] = handleOf(weight, "addLayerNorm", "weight");
  frame[3] = bias === undefined ? 0 : 1;
  frame[4] = bias === undefined ? 0 : handleOf(bias, "addLayerNorm", "bias");
  frame[5] = eps;
  call(363);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Root-mean-square norm over the last dim with float32 sums (Zhang & Sennrich 2019).
 *
 * `troupe::rms_norm(Tensor x, Tensor weight, float eps) -> Tensor`
 */
export function rmsNorm(x: Tensor, weight: Tensor, eps: number): Tensor {
  frame[0] = handleOf(x, "rmsNorm", "x");
  frame[1] = handleOf(weight, "rmsNorm", "weight");
  frame[2] = eps;
  return adopt(call(364));
}

/**
 * sum = x + residual, and its root-mean-square norm, in one pass.
 *
 * `troupe::add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps) -> (Tensor sum, Tensor normed)`
 */
export function addRmsNorm(x: Tensor, residual: Tensor, weight: Tensor, eps: number): [sum: Tensor, normed: Tensor] {
  frame[0] = handleOf(x, "addRmsNorm", "x");
  frame[1] = handleOf(residual, "addRmsNorm", "residual");
  frame[2] = handleOf(weight, "addRmsNorm", "weight");
  frame[3] = eps;
  call(365);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Features i and i + R/2 of [batch, heads, time, width] rotated by angles whose cosines and sines are [time, R/2] (Su et al. 2021).
 *
 * `troupe::rotary(Tensor x, Tensor cosines, Tensor sines) -> Tensor`
 */
export function rotary(x: Tensor, cosines: Tensor, sines: Tensor): Tensor {
  frame[0] = handleOf(x, "rotary", "x");
  frame[1] = handleOf(cosines, "rotary", "cosines");
  frame[2] = handleOf(sines, "rotary", "sines");
  return adopt(call(366));
}

/**
 * silu(gate) · up, in one pass (Shazeer 2020).
 *
 * `troupe::swiglu(Tensor gate, Tensor up) -> Tensor`
 */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  frame[0] = handleOf(gate, "swiglu", "gate");
  frame[1] = handleOf(up, "swiglu", "up");
  return adopt(call(367));
}

/**
 * gelu(x + bias), in one pass; approximate: "tanh" or "none" (Hendrycks & Gimpel 2016).
 *
 * `troupe::bias_gelu(Tensor x, Tensor bias, str approximate="tanh") -> Tensor`
 */
export function biasGelu(x: Tensor, bias: Tensor, approximate = "tanh"): Tensor {
  frame[0] = handleOf(x, "biasGelu", "x");
  frame[1] = handleOf(bias, "biasGelu", "bias");
  frame[2] = intern(approximate);
  return adopt(call(368));
}

/**
 * softmax(scale · q kᵀ) v over [batch, heads, time, width], on large matrix products (Dao et al. 2022).
 *
 * `troupe::attention(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> Tensor`
 */
export function attention(q: Tensor, k: Tensor, v: Tensor, causal: boolean, scale: number): Tensor {
  frame[0] = handleOf(q, "attention", "q");
  frame[1] = handleOf(k, "attention", "k");
  frame[2] = handleOf(v, "attention", "v");
  frame[3] = causal ? 1 : 0;
  frame[4] = scale;
  return adopt(call(369));
}

/**
 * The same with a mask, a bias, a window, grouped heads and lengths that differ.
 *
 * `troupe::masked_attention(Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor? bias, bool causal, int window, float scale) -> Tensor`
 */
export function maskedAttention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | undefined, bias: Tensor | undefined, causal: boolean, window: number, scale: number): Tensor {
  frame[0] = handleOf(q, "maskedAttention", "q");
  frame[1] = handleOf(k, "maskedAttention", "k");
  frame[2] = handleOf(v, "maskedAttention", "v");
  frame[3] = mask === undefined ? 0 : 1;
  frame[4] = mask === undefined ? 0 : handleOf(mask, "maskedAttention", "mask");
  frame[5] = bias === undefined ? 0 : 1;
  frame[6] = bias === undefined ? 0 : handleOf(bias, "maskedAttention", "bias");
  frame[7] = causal ? 1 : 0;
  frame[8] = window;
  frame[9] = scale;
  return adopt(call(370));
}

/**
 * The same whose weights [B, H, T, S] are dropped as troupe::dropout drops, by places that are whole rows of keys.
 *
 * `troupe::dropped_attention(Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor? bias, bool causal, int window, float scale, float p, int seed, int stream, int offset, int run, int stride) -> Tensor`
 */
export function droppedAttention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | undefined, bias: Tensor | undefined, causal: boolean, window: number, scale: number, p: number, seed: number, stream: number, offset: number, run: number, stride: number): Tensor {
  frame[0] = handleOf(q, "droppedAttention", "q");
  frame[1] = handleOf(k, "droppedAttention", "k");
  frame[2] = handleOf(v, "droppedAttention", "v");
  frame[3] = mask === undefined ? 0 : 1;
  frame[4] = mask === undefined ? 0 : handleOf(mask, "droppedAttention", "mask");
  frame[5] = bias === undefined ? 0 : 1;
  frame[6] = bias === undefined ? 0 : handleOf(bias, "droppedAttention", "bias");
  frame[7] = causal ? 1 : 0;
  frame[8] = window;
  frame[9] = scale;
  frame[10] = p;
  frame[11] = seed;
  frame[12] = stream;
  frame[13] = offset;
  frame[14] = run;
  frame[15] = stride;
  return adopt(call(371));
}

/**
 * Attention of tokens at positions of texts whose keys and values lie in pages, after theirs are written there (Kwon et al. 2023).
 *
 * `troupe::paged_attention_(Tensor q, Tensor k, Tensor v, Tensor[] keys, Tensor[] values, Tensor table, Tensor texts, Tensor positions, Tensor? written, Tensor? bias, int window, float scale) -> Tensor`
 */
export function pagedAttention_(q: Tensor, k: Tensor, v: Tensor, keys: readonly Tensor[], values: readonly Tensor[], table: Tensor, texts: Tensor, positions: Tensor, written: Tensor | undefined, bias: Tensor | undefined, window: number, scale: number): Tensor {
  frame[0] = handleOf(q, "pagedAttention_", "q");
  frame[1] = handleOf(k, "pagedAttention_", "k");
  frame[2] = handleOf(v, "pagedAttention_", "v");
  let next = putTensors(3, keys, "pagedAttention_", "keys");
  next = putTensors(next, values, "pagedAttention_", "values");
  frame[next] = handleOf(table, "pagedAttention_", "table");
  frame[next + 1] = handleOf(texts, "pagedAttention_", "texts");
  frame[next + 2] = handleOf(positions, "pagedAttention_", "positions");
  frame[next + 3] = written === undefined ? 0 : 1;
  frame[next + 4] = written === undefined ? 0 : handleOf(written, "pagedAttention_", "written");
  frame[next + 5] = bias === undefined ? 0 : 1;
  frame[next + 6] = bias === undefined ? 0 : handleOf(bias, "pagedAttention_", "bias");
  frame[next + 7] = window;
  frame[next + 8] = scale;
  return adopt(call(372));
}

/**
 * A token of each row of logits, at which the cumulative probability of those allowed passes the row's uniform number.
 *
 * `troupe::draw_tokens(Tensor logits, Tensor uniforms, float temperature, int top_k, float top_p) -> Tensor`
 */
export function drawTokens(logits: Tensor, uniforms: Tensor, temperature: number, topK: number, topP: number): Tensor {
  frame[0] = handleOf(logits, "drawTokens", "logits");
  frame[1] = handleOf(uniforms, "drawTokens", "uniforms");
  frame[2] = temperature;
  frame[3] = topK;
  frame[4] = topP;
  return adopt(call(373));
}

/**
 * Mean cross entropy of logits [N, V] against targets [N], never holding float32 logits.
 *
 * `troupe::cross_entropy(Tensor logits, Tensor targets, int ignore_index) -> Tensor`
 */
export function crossEntropy(logits: Tensor, targets: Tensor, ignoreIndex: number): Tensor {
  frame[0] = handleOf(logits, "crossEntropy", "logits");
  frame[1] = handleOf(targets, "crossEntropy", "targets");
  frame[2] = ignoreIndex;
  return adopt(call(374));
}

/**
 * Mean cross entropy of hidden weightᵀ against targets, in row chunks, never holding all logits.
 *
 * `troupe::linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, int ignore_index) -> Tensor`
 */
export function linearCrossEntropy(hidden: Tensor, weight: Tensor, targets: Tensor, ignoreIndex: number): Tensor {
  frame[0] = handleOf(hidden, "linearCrossEntropy", "hidden");
  frame[1] = handleOf(weight, "linearCrossEntropy", "weight");
  frame[2] = handleOf(targets, "linearCrossEntropy", "targets");
  frame[3] = ignoreIndex;
  return adopt(call(375));
}

/**
 * Of the classes that are here: largest logit, sum of exponentials, the target's logit, weighted sum; float32 [4, R].
 *
 * `troupe::vocabulary_statistics(Tensor logits, Tensor targets, int first_class, int num_classes, int ignore_index, Tensor? weights) -> Tensor`
 */
export function vocabularyStatistics(logits: Tensor, targets: Tensor, firstClass: number, numClasses: number, ignoreIndex: number, weights?: Tensor): Tensor {
  frame[0] = handleOf(logits, "vocabularyStatistics", "logits");
  frame[1] = handleOf(targets, "vocabularyStatistics", "targets");
  frame[2] = firstClass;
  frame[3] = numClasses;
  frame[4] = ignoreIndex;
  frame[5] = weights === undefined ? 0 : 1;
  frame[6] = weights === undefined ? 0 : handleOf(weights, "vocabularyStatistics", "weights");
  return adopt(call(376));
}

/**
 * Overwrites logits by a · softmax − b · [target] − c · weights, row by row.
 *
 * `troupe::vocabulary_gradient_(Tensor(a!) logits, Tensor logsumexp, Tensor targets, int first_class, Tensor coefficients, Tensor? weights) -> ()`
 */
export function vocabularyGradient_(logits: Tensor, logsumexp: Tensor, targets: Tensor, firstClass: number, coefficients: Tensor, weights?: Tensor): void {
  frame[0] = handleOf(logits, "vocabularyGradient_", "logits");
  frame[1] = handleOf(logsumexp, "vocabularyGradient_", "logsumexp");
  frame[2] = handleOf(targets, "vocabularyGradient_", "targets");
  frame[3] = firstClass;
  frame[4] = handleOf(coefficients, "vocabularyGradient_", "coefficients");
  frame[5] = weights === undefined ? 0 : 1;
  frame[6] = weights === undefined ? 0 : handleOf(weights, "vocabularyGradient_", "weights");
  call(377);
}

/**
 * value, with the given gradients times factor in backward.
 *
 * `troupe::attach_gradients(Tensor value, Tensor[] inputs, Tensor[] gradients, float factor) -> Tensor`
 */
export function attachGradients(value: Tensor, inputs: readonly Tensor[], gradients: readonly Tensor[], factor: number): Tensor {
  frame[0] = handleOf(value, "attachGradients", "value");
  let next = putTensors(1, inputs, "attachGradients", "inputs");
  next = putTensors(next, gradients, "attachGradients", "gradients");
  frame[next] = factor;
  return adopt(call(378));
}

/**
 * Rounds float32 to bfloat16 or float16 up or down by chance, right in the mean; element i depends on (seed, stream, offset + i) alone.
 *
 * `troupe::round_stochastic_(Tensor(a!) out, Tensor values, int seed, int stream, int offset) -> ()`
 */
export function roundStochastic_(out: Tensor, values: Tensor, seed: number, stream: number, offset: number): void {
  frame[0] = handleOf(out, "roundStochastic_", "out");
  frame[1] = handleOf(values, "roundStochastic_", "values");
  frame[2] = seed;
  frame[3] = stream;
  frame[4] = offset;
  call(379);
}

/**
 * Whether no element of any tensor is NaN or infinite.
 *
 * `troupe::all_finite(Tensor[] tensors) -> bool`
 */
export function allFinite(tensors: readonly Tensor[]): boolean {
  putTensors(0, tensors, "allFinite", "tensors");
  return call(380) !== 0;
}

/**
 * Windows of length tokens from starts on, and the same shifted by one, as int64.
 *
 * `troupe::token_windows(Tensor tokens, int[] starts, int length) -> (Tensor inputs, Tensor targets)`
 */
export function tokenWindows(tokens: Tensor, starts: readonly number[], length: number): [inputs: Tensor, targets: Tensor] {
  frame[0] = handleOf(tokens, "tokenWindows", "tokens");
  const next = putNumbers(1, starts, "tokenWindows", "starts");
  frame[next] = length;
  call(381);
  return [adoptAt(0), adoptAt(1)];
}

/**
 * Identity; backward: all-reduce (see src/compute/collectives).
 *
 * `troupe::copy_to_group(Tensor(a) x, int communicator) -> Tensor(a)`
 */
export function copyToGroup(x: Tensor, communicator: number): Tensor {
  frame[0] = handleOf(x, "copyToGroup", "x");
  frame[1] = communicator;
  return adopt(call(382));
}

/**
 * All-reduce; backward: identity.
 *
 * `troupe::reduce_from_group(Tensor x, int communicator) -> Tensor`
 */
export function reduceFromGroup(x: Tensor, communicator: number): Tensor {
  frame[0] = handleOf(x, "reduceFromGroup", "x");
  frame[1] = communicator;
  return adopt(call(383));
}

/**
 * All ranks' x joined along dim; backward: own slice.
 *
 * `troupe::gather_from_group(Tensor x, int communicator, int dim) -> Tensor`
 */
export function gatherFromGroup(x: Tensor, communicator: number, dim: number): Tensor {
  frame[0] = handleOf(x, "gatherFromGroup", "x");
  frame[1] = communicator;
  frame[2] = dim;
  return adopt(call(384));
}

/**
 * Own slice of dim; backward: all ranks' gradients joined.
 *
 * `troupe::scatter_to_group(Tensor x, int communicator, int dim) -> Tensor`
 */
export function scatterToGroup(x: Tensor, communicator: number, dim: number): Tensor {
  frame[0] = handleOf(x, "scatterToGroup", "x");
  frame[1] = communicator;
  frame[2] = dim;
  return adopt(call(385));
}

/**
 * All ranks' x joined along dim; backward: reduce-scatter.
 *
 * `troupe::gather_sequence(Tensor x, int communicator, int dim) -> Tensor`
 */
export function gatherSequence(x: Tensor, communicator: number, dim: number): Tensor {
  frame[0] = handleOf(x, "gatherSequence", "x");
  frame[1] = communicator;
  frame[2] = dim;
  return adopt(call(386));
}

/**
 * Own slice of dim of the sum of all ranks' x; backward: all-gather.
 *
 * `troupe::reduce_scatter_sequence(Tensor x, int communicator, int dim) -> Tensor`
 */
export function reduceScatterSequence(x: Tensor, communicator: number, dim: number): Tensor {
  frame[0] = handleOf(x, "reduceScatterSequence", "x");
  frame[1] = communicator;
  frame[2] = dim;
  return adopt(call(387));
}

/**
 * All ranks' x, joined along dim, times a weight, in chunks that are gathered while others are multiplied.
 *
 * `troupe::gather_matmul(Tensor x, Tensor weight, bool outputs_first, int communicator, int dim, int chunks) -> Tensor`
 */
export function gatherMatmul(x: Tensor, weight: Tensor, outputsFirst: boolean, communicator: number, dim: number, chunks: number): Tensor {
  frame[0] = handleOf(x, "gatherMatmul", "x");
  frame[1] = handleOf(weight, "gatherMatmul", "weight");
  frame[2] = outputsFirst ? 1 : 0;
  frame[3] = communicator;
  frame[4] = dim;
  frame[5] = chunks;
  return adopt(call(388));
}

/**
 * The own share along dim of all ranks' x times weight, in chunks that are reduced while others are multiplied.
 *
 * `troupe::matmul_reduce_scatter(Tensor x, Tensor weight, bool outputs_first, int communicator, int dim, int chunks) -> Tensor`
 */
export function matmulReduceScatter(x: Tensor, weight: Tensor, outputsFirst: boolean, communicator: number, dim: number, chunks: number): Tensor {
  frame[0] = handleOf(x, "matmulReduceScatter", "x");
  frame[1] = handleOf(weight, "matmulReduceScatter", "weight");
  frame[2] = outputsFirst ? 1 : 0;
  frame[3] = communicator;
  frame[4] = dim;
  frame[5] = chunks;
  return adopt(call(389));
}

/**
 * Reduction of all ranks' x; backward: its adjoint.
 *
 * `troupe::group_all_reduce(Tensor x, int communicator, int reduction) -> Tensor`
 */
export function groupAllReduce(x: Tensor, communicator: number, reduction: number): Tensor {
  frame[0] = handleOf(x, "groupAllReduce", "x");
  frame[1] = communicator;
  frame[2] = reduction;
  return adopt(call(390));
}

/**
 * Own share of dim 0 of the reduction of all ranks' x; backward: its adjoint.
 *
 * `troupe::group_reduce_scatter(Tensor x, int communicator, int reduction) -> Tensor`
 */
export function groupReduceScatter(x: Tensor, communicator: number, reduction: number): Tensor {
  frame[0] = handleOf(x, "groupReduceScatter", "x");
  frame[1] = communicator;
  frame[2] = reduction;
  return adopt(call(391));
}

/**
 * x of root; backward: sum of all gradients at root, zero elsewhere.
 *
 * `troupe::group_broadcast(Tensor x, int communicator, int root) -> Tensor`
 */
export function groupBroadcast(x: Tensor, communicator: number, root: number): Tensor {
  frame[0] = handleOf(x, "groupBroadcast", "x");
  frame[1] = communicator;
  frame[2] = root;
  return adopt(call(392));
}

/**
 * Rows of dim 0 to and from each rank; backward: the same, splits exchanged.
 *
 * `troupe::group_all_to_all(Tensor x, int communicator, int[] output_splits, int[] input_splits) -> Tensor`
 */
export function groupAllToAll(x: Tensor, communicator: number, outputSplits: readonly number[], inputSplits: readonly number[]): Tensor {
  frame[0] = handleOf(x, "groupAllToAll", "x");
  frame[1] = communicator;
  const next = putNumbers(2, outputSplits, "groupAllToAll", "outputSplits");
  putNumbers(next, inputSplits, "groupAllToAll", "inputSplits");
  return adopt(call(393));
}

/**
 * GGUF's blocks of 32 values in 8 bits with a scale, uint8 [34 · blocks], by ggml's reference code.
 *
 * `troupe::quantize_q8_0(Tensor values) -> Tensor`
 */
export function quantizeQ80(values: Tensor): Tensor {
  frame[0] = handleOf(values, "quantizeQ80", "values");
  return adopt(call(394));
}

/**
 * GGUF's super-blocks of 256 values in 4 bits with scales and minima, uint8 [144 · super-blocks], by ggml's reference code.
 *
 * `troupe::quantize_q4_k(Tensor values) -> Tensor`
 */
export function quantizeQ4K(values: Tensor): Tensor {
  frame[0] = handleOf(values, "quantizeQ4K", "values");
  return adopt(call(395));
}
