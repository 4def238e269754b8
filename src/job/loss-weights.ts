import { describeValue, isPlain, TroupeError } from "../errors/index.ts";

/**
 * Counts that a batch's losses are means over, such as the number of targets that count: one number for all losses, or
 * one for each by name. At least 0.
 */
export type LossWeights = number | Readonly<Record<string, number>>;

/**
 * Each batch's share of a step: weight × number of batches / Σ weights, so that the mean of share × loss over the batches is
 * Σ weight · loss / Σ weight. Exactly 1 if all weights are equal, 0 if nothing counts.
 * @param weights - of all batches of a step, in order
 * @returns a share for each, by the same names
 * @throws {TroupeError} `LOSS_WEIGHTS` for an invalid weight, or if batches name different losses
 */
export function sharesOf(weights: readonly LossWeights[]): LossWeights[] {
  for (const each of weights) checkWeights(each);
  const [first] = weights;
  if (typeof first !== "object") return shares(weights.map((each) => weightOf(each, undefined)));
  const byName = Object.keys(first).map(
    (name) => [name, shares(weights.map((each) => weightOf(each, name)))] as const,
  );
  return weights.map((_, index) =>
    Object.fromEntries(byName.map(([name, ofLoss]) => [name, ofLoss[index] as number])),
  );
}

/**
 * Returns the weight of one loss.
 * @param name - of the loss; undefined for a job's only loss, which has no name
 * @throws {TroupeError} `LOSS_WEIGHTS` if the weights do not name it
 */
export function weightOf(weights: LossWeights, name: string | undefined): number {
  if (typeof weights === "number") return weights;
  const weight = name === undefined ? undefined : weights[name];
  if (weight !== undefined) return weight;
  throw refuse(
    `weigh to give a weight for ${name === undefined ? "the job's one loss, which has no name" : `the loss "${name}"`}`,
    `weights for ${Object.keys(weights).join(", ")}`,
    "return one number, or give weights and losses the same names",
  );
}

/** Multiplies weights by a factor; returns them as they are for a factor of 1. */
export function scaleWeights(weights: LossWeights, factor: number): LossWeights {
  if (factor === 1) return weights;
  if (typeof weights === "number") return weights * factor;
  return Object.fromEntries(Object.entries(weights).map(([name, weight]) => [name, weight * factor]));
}

/** Checks weights. @throws {TroupeError} `LOSS_WEIGHTS` for a weight that is negative, not finite or missing */
export function checkWeights(weights: LossWeights): void {
  const values = isPlain(weights) ? Object.values(weights) : [weights];
  const isWeight = (weight: unknown) => typeof weight === "number" && weight >= 0 && weight < Infinity;
  if (values.length > 0 && values.every(isWeight)) return;
  const got = values.length === 0 ? "none" : describeValue(values.find((weight) => !isWeight(weight)));
  const hint = got === "a Tensor" ? "give its number: .item()" : "for instance how many targets count";
  throw refuse("weigh to give finite numbers of at least 0", got, hint);
}

function shares(weights: readonly number[]): number[] {
  // Sums of equal fractions round: batches of equal weight must give the bits of a job without weights.
  if (weights.every((weight) => weight === weights[0])) return weights.map((weight) => (weight > 0 ? 1 : 0));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => (weight * weights.length) / total);
}

function refuse(expected: string, got: unknown, hint: string): TroupeError {
  return new TroupeError("LOSS_WEIGHTS", { where: "job", expected, got: `${got}`, hint, fields: { got } });
}
