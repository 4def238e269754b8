import { TroupeError } from "../../../errors/index.ts";
import { ops, type Tensor } from "../../tensor/index.ts";

/** How a cross entropy treats classes and rows; names and meaning are those of torch's. */
export interface LossOptions {
  /** The target that counts for nothing. Default: −100. */
  readonly ignoreIndex?: number;
  /** float32 [V]: what a row with this target counts. Default: 1. */
  readonly classWeights?: Tensor;
  /** How much of a row's weight is spread over all classes, in [0, 1). Default: 0. */
  readonly labelSmoothing?: number;
  /** "mean" divides by the weights of the rows that count. */
  readonly reduction?: "mean" | "sum" | "none";
}

/** The classes whose logits are here, where other ranks have the rest. All ranks reduce at the same places. */
export interface ClassShare {
  /** The first class that is here. */
  readonly first: number;
  /** Of all ranks together. */
  readonly numClasses: number;
  /** Overwrites float32 values by the largest of all ranks', element by element. */
  max(values: Tensor): void;
  /** The same for their sum. */
  sum(values: Tensor): void;
}

/**
 * The losses of rows of logits, and their gradients, with a weight for each row:
 * loss = b (logsumexp − x_target) + c Σ_v w_v (logsumexp − x_v), where b weighs the target and c the smoothing.
 * Statistics are float32 whatever the logits are.
 */
export class WeighedRows {
  /** Σ of the weights of the rows that count: what a mean divides by; a float64 scalar, where the targets are. */
  readonly totalWeight: Tensor;
  readonly #targets: Tensor;
  readonly #ignoreIndex: number;
  readonly #numClasses: number;
  /** a = b + c Σ w, b and c; float32 [3, N]. */
  readonly #coefficients: Tensor;
  /** Of the classes that are here; only where labels are smoothed. */
  readonly #weightsHere: Tensor | undefined;
  /** Σ w, a float64 scalar; only where labels are smoothed. */
  readonly #weightSum: Tensor | 0;
  readonly #share: ClassShare | undefined;

  /**
   * @param targets - int64 [N]
   * @param range - the classes that are here: all, unless others have a share
   * @throws `MODULE_ARGUMENT` for label smoothing outside [0, 1) or weights of another number of classes
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
   * @param logits - [R, V'] of rows `firstRow` on, each contiguous, of the classes that are here
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
  if (!(labelSmoothing >= 0 && labelSmoothing < 1)) {
    throw new TroupeError(
      "MODULE_ARGUMENT",
      { where: "crossEntropy", expected: "label smoothing in [0, 1)", got: `${labelSmoothing}` },
      {
        fields: { labelSmoothing },
      },
    );
  }
  if (classWeights !== undefined && classWeights.shape.join() !== String(numClasses)) {
    throw new TroupeError(
      "MODULE_ARGUMENT",
      {
        where: "crossEntropy",
        expected: `class weights of shape [${numClasses}], one for each class`,
        got: `[${classWeights.shape}]`,
      },
      { fields: { expected: numClasses, got: classWeights.shape } },
    );
  }
}
