import type { Tensor } from "../tensor/index.ts";
import { checkChoice, checkOptions, checkShapes } from "./check.ts";
import { weighedMean } from "./log-probs.ts";

/** Texts that a policy has written, and how good they are. */
export interface RatedTexts {
  /** Log-probabilities by the model that is trained, [N, T]. */
  readonly logProbs: Tensor;
  /** Log-probabilities by the model that wrote the texts, [N, T]. Default: `logProbs`, right for one update after the texts. */
  readonly oldLogProbs?: Tensor | undefined;
  /** [N], or [N, T] for one of each token. */
  readonly advantages: Tensor;
  /** [N, T], see {@link tokenWeights}; 0 at tokens that the policy did not write. */
  readonly weights: Tensor;
}

/** Options of {@link policyLoss}. */
export interface PolicyOptions {
  /**
   * How far below and above 1 the ratio of new to old probability counts. Two numbers are for clip higher (DAPO, Yu et al. 2025,
   * https://arxiv.org/abs/2503.14476). Default: 0.2.
   */
  readonly clip?: number | readonly [below: number, above: number];
  /**
   * Whether each token has a ratio of its own, or each text one: the geometric mean of its tokens' (`mean`: GSPO, Zheng et al.
   * 2025, https://arxiv.org/abs/2507.18071), or their product (`product`: RLOO). Default: token.
   */
  readonly ratio?: "token" | "mean" | "product";
  /** The greatest ratio that counts where the advantage is negative (Ye et al. 2019, https://arxiv.org/abs/1912.09729). Default: none. */
  readonly dualClip?: number | undefined;
}

/**
 * The clipped loss of a policy: −min(ratio · advantage, clipped ratio · advantage). What else a method is made of is in the
 * advantages, the weights, and what is added to the loss:
 * - PPO: `generalizedAdvantages` and `valueLoss` (Schulman et al. 2017, https://arxiv.org/abs/1707.06347);
 * - GRPO: `groupAdvantages`, weights by sequence, and `weighedMean(klEstimate(…, "k3"), weights)` times a factor;
 * - RLOO: `leaveOneOutAdvantages`, weights by sequence, and the product of ratios;
 * - REINFORCE++: `reinforcePlusPlusAdvantages`, and weights by token.
 * @returns a scalar
 * @throws {TroupeError} `TENSOR_ARGUMENT` for an option that it does not have, another ratio, or shapes that do not fit
 */
export function policyLoss(texts: RatedTexts, options: PolicyOptions = {}): Tensor {
  checkOptions("policyLoss", options, { clip: true, ratio: true, dualClip: true });
  const { logProbs, oldLogProbs = logProbs.detach(), weights } = texts;
  const { clip = 0.2, ratio: kind = "token", dualClip } = options;
  checkChoice("policyLoss", "a ratio by", kind, ["token", "mean", "product"]);
  const advantages = texts.advantages.ndim === 1 ? texts.advantages.unsqueeze(-1) : texts.advantages;
  checkShapes("policyLoss", { logProbs, oldLogProbs, weights });
  checkShapes("policyLoss", {
    logProbs: advantages.shape[1] === 1 ? logProbs.narrow(-1, 0, 1) : logProbs,
    advantages,
  });
  const [below, above] = typeof clip === "number" ? [clip, clip] : clip;
  const ratios = ratiosOf(logProbs.sub(oldLogProbs), weights, kind).exp();
  const gains = ratios.mul(advantages).minimum(ratios.clamp(1 - below, 1 + above).mul(advantages));
  // The bound is for negative advantages: any other gain is at least 0, and the bound at most.
  const bounded = dualClip === undefined ? gains : gains.maximum(advantages.clampMax(0).mul(dualClip));
  return weighedMean(bounded.expandAs(weights), weights).neg();
}

/** [N, T], or [N, 1] of each text's counted tokens. */
function ratiosOf(logRatios: Tensor, weights: Tensor, kind: "token" | "mean" | "product"): Tensor {
  if (kind === "token") return logRatios;
  const counted = weights.ne(0).to(logRatios.dtype);
  const sums = logRatios.mul(counted).sum([-1], true);
  return kind === "product" ? sums : sums.div(counted.sum([-1], true).clampMin(1));
}

/** Values of each token, [N, T]. */
export interface TokenValues {
  /** By the model that is trained. */
  readonly values: Tensor;
  /** By the model at the time of the texts. */
  readonly oldValues: Tensor;
  /** @see generalizedAdvantages */
  readonly returns: Tensor;
  /** @see tokenWeights */
  readonly weights: Tensor;
}

/**
 * The loss of PPO's values: half the squared error, of the value or of the value kept near its old one, whichever is larger.
 * `clip` is how far from its old one a value counts (default: 0.2).
 * @returns a scalar
 * @see Schulman et al. 2017, https://arxiv.org/abs/1707.06347; as in OpenAI's baselines
 */
export function valueLoss(
  { values, oldValues, returns, weights }: TokenValues,
  options: { readonly clip?: number } = {},
): Tensor {
  checkOptions("valueLoss", options, { clip: true });
  const { clip = 0.2 } = options;
  checkShapes("valueLoss", { values, oldValues, returns, weights });
  const near = oldValues.add(values.sub(oldValues).clamp(-clip, clip));
  const errors = values.sub(returns).square().maximum(near.sub(returns).square());
  return weighedMean(errors, weights).div(2);
}
