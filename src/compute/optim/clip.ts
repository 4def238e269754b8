import { noGrad, scope, type Tensor } from "../tensor/index.ts";
import { optionError } from "./option-error.ts";

/**
 * How the averaged gradient is kept in bounds before the update. Plain data.
 * - `l2` and `inf`: all of it is scaled so that its norm is at most `max`;
 * - `value`: each element is brought between -max and max.
 */
export interface ClipRule {
  readonly by: "l2" | "inf" | "value";
  readonly max: number;
}

/**
 * @param clip - a number is the largest L2 norm
 * @returns the rule; undefined for no clipping
 * @throws {TroupeError} `OPTIMIZER_OPTION` for a limit that is not positive
 */
export function clipRuleOf(clip: number | ClipRule | undefined): ClipRule | undefined {
  if (clip === undefined || clip === Number.POSITIVE_INFINITY) return undefined;
  const rule: ClipRule = typeof clip === "number" ? { by: "l2", max: clip } : clip;
  if (!["l2", "inf", "value"].includes(rule.by)) throw optionError("clip.by", "l2, inf or value", rule.by);
  if (!(rule.max > 0)) throw optionError("clipNorm", "> 0", rule.max);
  return rule;
}

/**
 * @param normBefore - of the averaged gradient
 * @param maxNorm - Infinity turns clipping off
 * @returns the factor PyTorch's `clip_grad_norm_` multiplies by
 * @see Pascanu et al. 2013, https://arxiv.org/abs/1211.5063
 */
export function clipFactor(normBefore: number, maxNorm: number): number {
  return Math.min(1, maxNorm / (normBefore + 1e-6));
}

/**
 * Clips gradients in place, on one device: the readable reference for the sharded clip. L2 norms are summed in float64.
 * @param clip - a number is the largest L2 norm; Infinity measures and leaves the gradients alone
 * @returns the norm before clipping: the largest magnitude by `inf`, else L2
 */
export function clipGradNorm(gradients: readonly Tensor[], clip: number | ClipRule): number {
  const { by, max } = typeof clip === "number" ? { by: "l2" as const, max: clip } : clip;
  return noGrad(() =>
    scope(() => {
      const norm = by === "inf" ? largest(gradients) : euclidean(gradients);
      const factor = by === "value" ? 1 : clipFactor(norm, max);
      for (const gradient of gradients) {
        if (by === "value") gradient.clamp_(-max, max);
        else if (factor < 1) gradient.mul_(factor);
      }
      return norm;
    }),
  );
}

function euclidean(gradients: readonly Tensor[]): number {
  const squares = gradients.map((gradient) => gradient.to("float64").square().sum().item());
  return Math.sqrt(squares.reduce((a, b) => a + b, 0));
}

function largest(gradients: readonly Tensor[]): number {
  const maxima = gradients.map((gradient) => (gradient.numel === 0 ? 0 : gradient.abs().max().item()));
  return Math.max(0, ...maxima);
}
