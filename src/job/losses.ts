import { Tensor } from "../compute/tensor/index.ts";
import { describeValue, TroupeError } from "../errors/index.ts";
import { type LossWeights, weightOf } from "./loss-weights.ts";

/**
 * What a job computes of a batch: a mean, or several by name, whose sum is what is made small. Scalars of any floating type: one
 * that is computed in float64 is told, and walked backwards, in float64.
 */
export type Losses = Tensor | Readonly<Record<string, Tensor>>;

/** A batch's losses as numbers: one without a name, or each by its name. Nats. */
export type LossValues = number | Readonly<Record<string, number>>;

/**
 * @param shares - what each counts, as `sharesOf` has it
 * @returns Σ share · loss: what backward starts from. The very loss where it is one, and its share 1
 * @throws {TroupeError} `LOSS_WEIGHTS` for a loss without a share; `LOSS_INVALID`, see {@link checkLosses}
 */
export function weighLosses(losses: Losses, shares: LossWeights): Tensor {
  const weighed = namedLosses(losses).map(([name, loss]) => scaled(loss, weightOf(shares, name)));
  return weighed.reduce((sum, loss) => sum.add(loss));
}

/** @returns the losses' values. Waits for them */
export function valuesOf(losses: Readonly<Record<string, Tensor>>): Record<string, number> {
  return Object.fromEntries(Object.entries(losses).map(([name, loss]) => [name, loss.item()]));
}

/** @returns each value of the losses that have names, weighed; what counts for nothing is 0, whatever it was */
export function weighValues(
  values: Readonly<Record<string, number>>,
  weights: LossWeights,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, weighValue(value, weightOf(weights, name))]),
  );
}

/** @returns weight × value; 0 where it counts for nothing, though a mean over nothing is NaN */
export function weighValue(value: number, weight: number): number {
  return weight === 0 ? 0 : weight * value;
}

/**
 * Refuses what no step can be made of.
 * @param where - what has returned it, as people call it
 * @throws {TroupeError} `LOSS_INVALID` for what is no scalar tensor, nor scalars by name
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

/** The value of a loss that is none, and what may have been meant. */
function kindOf(value: unknown): [got: string, hint: string] {
  if (value === undefined)
    return ["undefined", "is there a return? A model gives its loss only where it is given targets"];
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

function namedLosses(losses: Losses): [name: string | undefined, loss: Tensor][] {
  checkLosses(losses);
  return losses instanceof Tensor ? [[undefined, losses]] : Object.entries(losses);
}

function scaled(loss: Tensor, share: number): Tensor {
  if (share === 1) return loss;
  // A mean over nothing is NaN, and 0 · NaN would be NaN; its gradient is 0 either way.
  return share === 0 ? loss.nanToNum(0, 0, 0).mul(0) : loss.mul(share);
}
