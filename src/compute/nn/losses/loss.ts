import { describeValue, type NamesOf, TroupeError } from "../../../errors/index.ts";
import {
  full,
  gradEnabled,
  isMetered,
  isOnGpu,
  noGrad,
  ops,
  scope,
  Tensor,
  withoutAutocast,
  zeros,
} from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import { checkLossOptions } from "./loss-options.ts";
import { type ClassShare, type LossOptions, WeighedRows } from "./weighed-rows.ts";

/** Rows with this target are ignored. */
export const IGNORE_INDEX = -100;

/** Options of {@link linearCrossEntropy}. */
export interface LinearLossOptions extends LossOptions {
  readonly reduction?: "mean" | "sum";
  /** [V], added to the logits; with `share`, of this rank's classes. Default: none. */
  readonly bias?: Tensor | undefined;
}

const NAMES: NamesOf<LossOptions> = {
  ...{ ignoreIndex: true, classWeights: true, labelSmoothing: true, reduction: true },
};

const LINEAR_NAMES: NamesOf<LinearLossOptions> = { ...NAMES, bias: true };

/** libtorch's number of the reduction. */
const MEAN = 1;

/**
 * On a GPU the number of classes is padded to a multiple of this, because unaligned rows are read at half the speed: 50,257
 * classes took 2.2 times as long on an H100 as 50,304.
 */
const CLASSES_AT_ONCE = 64;

/** Limit of the logits that exist at a time, in bytes. Products over a vocabulary need some thousand rows to fill a GPU. */
const maxLogitsBytes = (hidden: Tensor) => (isOnGpu(hidden) ? 2 ** 30 : 64 * 2 ** 20);

/**
 * Computes the cross entropy in nats: by default the mean over the rows whose target is not {@link IGNORE_INDEX}, NaN if
 * there are none.
 * @param logits - [..., V], float
 * @param targets - [...], int64, each in [0, V) or ignored
 * @returns float32, a scalar, or [N] over all rows for reduction "none"
 * @throws {TroupeError} `TENSOR_ARGUMENT` if one is not a tensor, `MODULE_ARGUMENT` for an option out of range, or that it does
 *   not have
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: LossOptions = {}): Tensor {
  checkLossOptions("crossEntropy", options, NAMES, ["mean", "sum", "none"]);
  for (const [name, given] of Object.entries({ logits, targets }))
    if (!(given instanceof Tensor)) throw notTensor(name, given);
  const numClasses = logits.shape.at(-1) ?? 0;
  const rows = logits.reshape([-1, numClasses]); // [N, V]
  const ids = targets.reshape([-1]); // [N]
  if (logits.device === "meta" && options.reduction === "none")
    return ops.troupe.placeholder(ids.shape, "float32");
  // A pipeline stage other than the last needs only the shape.
  if (logits.device !== "meta" && !isPlain(options)) return weighedCrossEntropy(rows, ids, options);
  const ignored = options.ignoreIndex ?? IGNORE_INDEX;
  if (!isFused()) return ops.crossEntropyLoss(rows.to("float32"), ids, undefined, MEAN, ignored);
  return ops.troupe.crossEntropy(rows, ids, ignored);
}

/**
 * Computes {@link crossEntropy} of `hidden · weightᵀ` in chunks of rows, so that the logits never exist all at once. The
 * gradients are computed in the forward pass.
 * @param hidden - [..., D], float
 * @param weight - [V, D], the unembedding; with `share`, the rows of this rank's classes
 * @param targets - [...], int64, each in [0, V) or ignored
 * @param options.bias - [V], added to the logits
 * @param share - if other ranks hold the other classes: all of them call this together with the same hidden states and
 *   targets; the gradient of `hidden` is then the part that comes from this rank's classes
 * @returns float32 scalar
 * @throws {TroupeError} `MODULE_ARGUMENT` for an option out of range, or that it does not have
 */
export function linearCrossEntropy(
  hidden: Tensor,
  weight: Tensor,
  targets: Tensor,
  options: LinearLossOptions = {},
  share?: ClassShare,
): Tensor {
  checkLossOptions("linearCrossEntropy", options, LINEAR_NAMES, ["mean", "sum"]);
  const rows = hidden.reshape([-1, hidden.shape.at(-1) ?? 0]); // [N, D]
  const ids = targets.reshape([-1]); // [N]
  if (!isFused() && share === undefined) {
    const { bias, ...ofRows } = options;
    return crossEntropy(ops.linear(rows, weight, bias), ids, ofRows);
  }
  const hasValues = hidden.device !== "meta"; // a pipeline stage other than the last needs only the shape
  const isWeighed = share !== undefined || options.bias !== undefined || !isPlain(options);
  if (isWeighed && isMetered(hidden)) return plannedCrossEntropy(rows, weight, options.bias);
  if (hasValues && isWeighed)
    return withoutAutocast((dtype) => {
      if (dtype === undefined) return sharedCrossEntropy(rows, weight, ids, options, share);
      const bias = options.bias?.to(dtype);
      return sharedCrossEntropy(rows.to(dtype), weight.to(dtype), ids, { ...options, bias }, share);
    });
  return ops.troupe.linearCrossEntropy(rows, weight, ids, options.ignoreIndex ?? IGNORE_INDEX);
}

/**
 * Turns labels that equal the inputs into targets for the next position: shifted left by one, with the last position ignored.
 * @param labels - [B, T], int64
 * @returns [B, T], int64
 */
export function shiftLabels(labels: Tensor): Tensor {
  const [batch = 0, length = 0] = labels.shape;
  const last = full([batch, Math.min(length, 1)], IGNORE_INDEX, { dtype: "int64" }); // [B, 1]
  return ops.cat([labels.narrow(1, Math.min(length, 1), Math.max(length - 1, 0)), last], 1); // [B, T]
}

/** Whether the one-pass kernels support these options. */
function isPlain({ classWeights, labelSmoothing = 0, reduction = "mean" }: LossOptions): boolean {
  return classWeights === undefined && labelSmoothing === 0 && reduction === "mean";
}

function weighedCrossEntropy(logits: Tensor, targets: Tensor, options: LossOptions): Tensor {
  const { reduction = "mean", ignoreIndex = IGNORE_INDEX } = options;
  const numClasses = logits.shape[1] ?? 0;
  return scope(() => {
    const { value, gradient, factor } = noGrad(() => {
      const range = { numClasses, numHere: numClasses, share: undefined };
      const rows = new WeighedRows(targets, range, { ...options, ignoreIndex });
      const gradient = logits.clone().contiguous(); // [N, V]
      const { losses, logsumexp } = rows.losses(gradient, 0);
      rows.replaceByGradient(gradient, 0, logsumexp, 1);
      if (reduction === "none") return { value: losses, gradient, factor: undefined };
      const factor = reduction === "mean" ? rows.totalWeight.reciprocal() : undefined;
      return { value: sumOf(losses), gradient, factor };
    });
    const sum = ops.troupe.attachGradients(value, [logits], [gradient], 1);
    return reduction === "none" ? sum : timesFactor(sum, factor).to("float32");
  });
}

function sharedCrossEntropy(
  hidden: Tensor,
  weight: Tensor,
  targets: Tensor,
  options: LinearLossOptions,
  share: ClassShare | undefined,
): Tensor {
  const { reduction = "mean", ignoreIndex = IGNORE_INDEX, bias } = options;
  const [numHeld = 0] = weight.shape;
  const numClasses = share?.numClasses ?? numHeld;
  const numHere = Math.max(0, Math.min(numHeld, numClasses - (share?.first ?? 0))); // classes beyond are padding
  const chunkRows = Math.max(1, Math.floor(maxLogitsBytes(hidden) / (4 * numHeld)));
  const recording = gradEnabled();
  return scope(() => {
    const { loss, gradients, factor } = noGrad(() => {
      const rows = new WeighedRows(targets, { numClasses, numHere, share }, { ...options, ignoreIndex });
      const mean = reduction === "mean" ? rows.totalWeight.reciprocal() : undefined;
      // float16 cannot hold p / rows, and a loss scale would come too late: there backward divides.
      const isLate = hidden.dtype === "float16";
      const scale = mean === undefined || isLate ? 1 : finite(mean);
      const classes = wholeGroups(weight.narrow(0, 0, numHere)); // [V″, D], zeros from V' on
      const offsets = bias && wholeGroups(bias.narrow(0, 0, numHere)); // [V″]
      const gradients = {
        hidden: ops.zerosLike(hidden), // [N, D]
        weight: zeros(weight.shape), // [V', D], float32: bfloat16 would lose the small terms of many chunks
        bias: bias?.requiresGrad ? zeros(bias.shape) : undefined, // [V'], float32
      };
      const total = zeros([], { dtype: "float64" });
      for (let first = 0; first < targets.numel; first += chunkRows)
        scope(() => {
          const chunk = hidden.narrow(0, first, Math.min(chunkRows, targets.numel - first)); // [R, D]
          const products = ops.linear(chunk, classes, offsets); // [R, V″]
          const logits = products.narrow(1, 0, numHere); // [R, V']
          const { losses, logsumexp } = rows.losses(logits, first);
          if (recording) {
            rows.replaceByGradient(logits, first, logsumexp, scale);
            const ofClasses = (sums: Tensor) => sums.narrow(0, 0, numHere);
            gradients.hidden.narrow(0, first, chunk.shape[0] ?? 0).copy_(products.matmul(classes));
            ofClasses(gradients.weight).add_(ofClasses(products.transpose(0, 1).matmul(chunk)));
            if (gradients.bias)
              ofClasses(gradients.bias).add_(ofClasses(products.sum([0], false, "float32")));
          }
          total.add_(sumOf(losses));
        });
      const made = [gradients.hidden, gradients.weight.to(weight.dtype)];
      if (bias && gradients.bias) made.push(gradients.bias.to(bias.dtype));
      return isLate
        ? { loss: total, gradients: made, factor: mean }
        : { loss: mean === undefined ? total : total.mul(mean), gradients: made, factor: undefined };
    });
    const inputs = bias?.requiresGrad ? [hidden, weight, bias] : [hidden, weight];
    const attached = ops.troupe.attachGradients(loss, inputs, gradients, 1);
    return timesFactor(attached, factor).to("float32");
  });
}

/** Runs {@link sharedCrossEntropy} on shapes only: the tensors that it makes and keeps, and its products. */
function plannedCrossEntropy(hidden: Tensor, weight: Tensor, bias: Tensor | undefined): Tensor {
  const [numRows = 0] = hidden.shape;
  const chunkRows = Math.max(1, Math.floor(maxLogitsBytes(hidden) / (4 * (weight.shape[0] ?? 0))));
  const { placeholder } = ops.troupe;
  return scope(() => {
    const gradients = noGrad(() => {
      const [classes, offsets] = [wholeGroups(weight), bias && wholeGroups(bias)];
      const made = [placeholder(hidden.shape, hidden.dtype)];
      const sums = placeholder(weight.shape, "float32");
      for (let first = 0; first < numRows; first += chunkRows)
        scope(() => {
          const chunk = hidden.narrow(0, first, Math.min(chunkRows, numRows - first)); // [R, D]
          const products = ops.linear(chunk, classes, offsets); // [R, V″]
          products.matmul(classes);
          products.transpose(0, 1).matmul(chunk);
        });
      made.push(sums.to(weight.dtype));
      if (bias?.requiresGrad) made.push(placeholder(bias.shape, bias.dtype));
      return made;
    });
    const inputs = bias?.requiresGrad ? [hidden, weight, bias] : [hidden, weight];
    return ops.troupe.attachGradients(placeholder([], "float32"), inputs, gradients, 1);
  });
}

/** Pads classes with rows of zeros to a multiple of {@link CLASSES_AT_ONCE} on a GPU; elsewhere returns them unchanged. */
function wholeGroups(classes: Tensor): Tensor {
  const [numClasses = 0, ...rest] = classes.shape;
  const missing = (CLASSES_AT_ONCE - (numClasses % CLASSES_AT_ONCE)) % CLASSES_AT_ONCE;
  if (!isOnGpu(classes) || missing === 0 || numClasses < CLASSES_AT_ONCE) return classes;
  return ops.cat([classes, ops.zeros([missing, ...rest], classes.dtype)]);
}

/** Sums losses to a float64 scalar on their device; nothing is read back. */
const sumOf = (losses: Tensor): Tensor => losses.to("float64").sum();

/**
 * Replaces an infinite factor by 0. If no row counts, the factor is 1 / 0; then the loss is NaN and the gradients are 0, as
 * in libtorch.
 */
const finite = (factor: Tensor): Tensor => factor.maskedFill(factor.isfinite().logicalNot(), 0);

/** Multiplies by a factor. Gradients use the finite factor; an infinite one makes the value NaN. */
function timesFactor(sum: Tensor, factor: Tensor | undefined): Tensor {
  return factor === undefined ? sum : sum.mul(finite(factor)).add(factor.sub(factor));
}

function notTensor(name: string, given: unknown): TroupeError {
  const isNothing = given === undefined || given === null;
  return new TroupeError("TENSOR_ARGUMENT", {
    where: "crossEntropy",
    expected: `${name} to be a tensor`,
    got: describeValue(given),
    hint: isNothing ? "check that the model returns it, under that name" : undefined,
  });
}
