import { Tensor } from "../compute/tensor/index.ts";
import { describeValue, TroupeError } from "../errors/index.ts";
import { type LossWeights, weightOf } from "./loss-weights.ts";

/**
 * A job's loss of a batch: a mean, or several by name, whose sum is minimized. Scalars of any floating type: a loss in
 * float64 is reported, and propagated backward, in float64.
 */
export type Losses = Tensor | Readonly<Record<string, Tensor>>;

/** A batch's losses as numbers, in nats: one without a name, or each by its name. */
export type LossValues = number | Readonly<Record<string, number>>;

/**
 * Weights and sums losses, for backward.
 * @param shares - the weight of each, see `sharesOf`
 * @returns Σ share · loss; a single loss of share 1 is returned itself
 * @throws {TroupeError} `LOSS_WEIGHTS` for a loss without a share; `LOSS_INVALID`, see {@link checkLosses}
 */
export function weighLosses(losses: Losses, shares: LossWeights): Tensor {
  checkLosses(losses);
  const named = losses instanceof Tensor ? [[undefined, losses] as const] : Object.entries(losses);
  const weighed = named.map(([name, loss]) => scaled(loss, weightOf(shares, name)));
  return weighed.reduce((sum, loss) => sum.add(loss));
}

/** Returns the losses' values; waits for them. */
export function valuesOf(losses: Readonly<Record<string, Tensor>>): Record<string, number> {
  return Object.fromEntries(Object.entries(losses).map(([name, loss]) => [name, loss.item()]));
}

/** Weighs named values; a weight of 0 gives 0, whatever the value. */
export function weighValues(
  values: Readonly<Record<string, number>>,
  weights: LossWeights,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, weighValue(value, weightOf(weights, name))]),
  );
}

/** Returns weight × value; 0 for a weight of 0, even where a mean over nothing is NaN. */
export function weighValue(value: number, weight: number): number {
  return weight === 0 ? 0 : weight * value;
}

/**
 * Checks the loss that a job's function `where` has returned.
 * @throws {TroupeError} `LOSS_INVALID` unless it is a scalar tensor, or scalars by name
 */
export function checkLosses(given: unknown, where = "loss"): asserts given is Losses {
  if (given instanceof Tensor) {
    if (given.numel === 1) return;
    throw invalid(where, "", `a tensor of shape [${given.shape}]`, "take its mean: .mean()");
  }
  if (typeof given !== "object" || given === null || given instanceof Promise)
    throw invalid(where, "", ...kindOf(given));
  const named = Object.entries(given as Record<string, unknown>);
  if (named.length === 0) throw invalid(where, "", "an object without any", "return at least one");
  for (const [name, loss] of named) {
    if (!(loss instanceof Tensor)) throw invalid(where, name, ...kindOf(loss));
    if (loss.numel !== 1)
      throw invalid(where, name, `a tensor of shape [${loss.shape}]`, "take its mean: .mean()");
  }
}

/** Describes a value that is not a loss, with a hint. */
function kindOf(value: unknown): [got: string, hint: string] {
  if (value === undefined)
    return ["undefined", "is there a return? A model returns its loss only when given targets"];
  if (value instanceof Promise) return ["a promise", "leave async out: a loss computes where it is called"];
  if (typeof value === "number")
    return [`the number ${value}`, "give the tensor, not its item(): its graph leads back to the parameters"];
  return [describeValue(value), "such as crossEntropy(logits, targets)"];
}

function invalid(where: string, name: string, got: string, hint: string): TroupeError {
  const expected = "a scalar tensor, or an object of them by name";
  return new TroupeError("LOSS_INVALID", {
    where,
    expected,
    got: name === "" ? got : `${got} as ${name}`,
    hint,
  });
}

function scaled(loss: Tensor, share: number): Tensor {
  if (share === 1) return loss;
  // A mean over nothing is NaN, and 0 · NaN would be NaN; its gradient is 0 either way.
  return share === 0 ? loss.nanToNum(0, 0, 0).mul(0) : loss.mul(share);
}
