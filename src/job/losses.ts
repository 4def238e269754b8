import { TroupeError } from "../errors.ts";
import { Tensor } from "../tensor/index.ts";
import { type LossWeights, weightOf } from "./loss-weights.ts";

/** What a job computes of a batch: a mean, or several by name, whose sum is what is made small. float32 scalars. */
export type Losses = Tensor | Readonly<Record<string, Tensor>>;

/** A batch's losses as numbers: one without a name, or each by its name. Nats. */
export type LossValues = number | Readonly<Record<string, number>>;

/**
 * @param shares - what each counts, as `sharesOf` has it
 * @returns Σ share · loss: what backward starts from. The very loss where it is one, and its share 1
 * @throws {TroupeError} `LOSS_WEIGHTS` for a loss without a share, or for no losses
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

function namedLosses(losses: Losses): [name: string | undefined, loss: Tensor][] {
  if (losses instanceof Tensor) return [[undefined, losses]];
  const named = Object.entries(losses);
  if (named.length > 0) return named;
  throw new TroupeError("LOSS_WEIGHTS", {
    where: "job",
    expected: "loss to return a scalar, or scalars by name",
    got: "a record without any",
    hint: "return at least one",
  });
}

function scaled(loss: Tensor, share: number): Tensor {
  if (share === 1) return loss;
  // A mean over nothing is NaN, and 0 · NaN would be NaN; its gradient is 0 either way.
  return share === 0 ? loss.nanToNum(0, 0, 0).mul(0) : loss.mul(share);
}
