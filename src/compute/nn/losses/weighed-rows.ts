import { ops, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";

/** Options of a cross entropy; names and meanings are torch's. */
export interface LossOptions {
  /** The target that is ignored. Default: −100. */
  readonly ignoreIndex?: number;
  /** float32 [V]: weight of a row by its target. Default: 1. */
  readonly classWeights?: Tensor;
  /** Share of a row's weight that is spread over all classes, in [0, 1). Default: 0. */
  readonly labelSmoothing?: number;
  /** "mean" divides by the sum of the weights of the rows that are not ignored. */
  readonly reduction?: "mean" | "sum" | "none";
}

/** The classes of this rank, if other ranks have the rest. All ranks call `max` and `sum` in the same order. */
export interface ClassShare {
  /** The first class of this rank. */
  readonly first: number;
  /** Number of classes of all ranks together. */
  readonly numClasses: number;
  /** Replaces float32 values by the maximum over all ranks, element by element. */
  max(values: Tensor): void;
  /** Replaces float32 values by the sum over all ranks, element by element. */
  sum(values: Tensor): void;
}

/**
 * Weighted losses of rows of logits, and their gradients: loss = b (logsumexp − x_target) + c Σ_v w_v (logsumexp − x_v),
 * where b weighs the target and c the smoothing. Statistics are float32, whatever the dtype of the logits.
 */
export class WeighedRows {
  /** Sum of the weights of the rows that are not ignored, which a mean divides by; a float64 scalar on the targets' device. */
  readonly totalWeight: Tensor;
  readonly #targets: Tensor;
  readonly #ignoreIndex: number;
  readonly #numClasses: number;
  /** a = b + c Σ w, b and c; float32 [3, N]. */
  readonly #coefficients: Tensor;
  /** Weights of this rank's classes; only if labels are smoothed. */
  readonly #weightsHere: Tensor | undefined;
  /** Σ w, a float64 scalar; only if labels are smoothed. */
  readonly #weightSum: Tensor | 0;
  readonly #share: ClassShare | undefined;

  /**
   * @param targets - int64 [N]
   * @param range - the classes of this rank: all, unless other ranks have a share
   * @throws `MODULE_ARGUMENT` for label smoothing outside [0, 1), or class weights of the wrong shape
   */
  constructor(
    targets: Tensor,
    range: { readonly numClasses: number; readonly numHere: number; readonly share: ClassShare | undefined },
    options: LossOptions & { readonly ignoreIndex: number },
  ) {
    const { numClasses, numHere, share } = range;
    const { ignoreIndex, classWeights, labelSmoothing = 0 } = options;
    check(labelSmoothing, classWeights, numClasses);
    const counted = targets.ne(ignoreIndex).to("float32"); // [N]
    const classes = targets.maskedFill(targets.eq(ignoreIndex), 0).clamp(0, Math.max(0, numClasses - 1));
    const weights = classWeights === undefined ? counted : classWeights.indexSelect(0, classes).mul(counted);
    const smoothed = classWeights ?? ops.ones([numClasses], "float32");
    const b = weights.mul(1 - labelSmoothing);
    const c = counted.mul(labelSmoothing / numClasses);
    this.totalWeight = weights.to("float64").sum();
    this.#weightSum = labelSmoothing === 0 ? 0 : smoothed.to("float64").sum();
    this.#coefficients = ops.stack([b.add(c.mul(this.#weightSum)), b, c]); // [3, N]
    this.#weightsHere =
      labelSmoothing === 0 ? undefined : smoothed.narrow(0, share?.first ?? 0, numHere).contiguous();
    this.#targets = targets.contiguous();
    this.#ignoreIndex = ignoreIndex;
    this.#numClasses = numClasses;
    this.#share = share;
  }

  /**
   * Computes the losses of some rows.
   * @param logits - [R, V'] of the rows from `firstRow` on, each contiguous, of this rank's classes
   * @returns float32 [R] each, the same on every rank
   */
  losses(logits: Tensor, firstRow: number): { readonly losses: Tensor; readonly logsumexp: Tensor } {
    const [numRows = 0] = logits.shape;
    const targets = this.#targets.narrow(0, firstRow, numRows);
    const statistics = ops.troupe.vocabularyStatistics(
      logits,
      targets,
      this.#share?.first ?? 0,
      this.#numClasses,
      this.#ignoreIndex,
      this.#weightsHere,
    ); // [4, R]
    const largestHere = statistics.select(0, 0); // [R]
    const largest = largestHere.clone();
    this.#share?.max(largest);
    const sums = statistics.narrow(0, 1, 3).clone(); // Σ exp, target, Σ w x
    sums.select(0, 0).mul_(largestHere.sub(largest).exp());
    this.#share?.sum(sums);
    const logsumexp = largest.add(sums.select(0, 0).log()); // [R]
    const [, b, c] = this.#coefficientsOf(firstRow, numRows).unbind(0) as [Tensor, Tensor, Tensor];
    const losses = b
      .mul(logsumexp.sub(sums.select(0, 1)))
      .add(c.mul(logsumexp.mul(this.#weightSum).sub(sums.select(0, 2))));
    return { losses: losses.maskedFill(targets.eq(this.#ignoreIndex), 0), logsumexp };
  }

  /** Overwrites the logits by the gradient of `scale` (a float64 scalar) × the sum of their rows' losses. */
  replaceByGradient(logits: Tensor, firstRow: number, logsumexp: Tensor, scale: Tensor | number): void {
    const [numRows = 0] = logits.shape;
    ops.troupe.vocabularyGradient_(
      logits,
      logsumexp,
      this.#targets.narrow(0, firstRow, numRows),
      this.#share?.first ?? 0,
      this.#coefficientsOf(firstRow, numRows).mul(scale),
      this.#weightsHere,
    );
  }

  #coefficientsOf(firstRow: number, numRows: number): Tensor {
    return this.#coefficients.narrow(1, firstRow, numRows); // [3, R]
  }
}

function check(labelSmoothing: number, classWeights: Tensor | undefined, numClasses: number): void {
  if (!(labelSmoothing >= 0 && labelSmoothing < 1))
    throw argumentError("crossEntropy", "label smoothing in [0, 1)", labelSmoothing, { labelSmoothing });
  if (classWeights === undefined || classWeights.shape.join() === String(numClasses)) return;
  const expected = `class weights of shape [${numClasses}], one for each class`;
  const { shape } = classWeights;
  throw argumentError("crossEntropy", expected, `[${shape}]`, { expected: numClasses, got: shape });
}
