import { ops, type Tensor } from "../tensor/index.ts";
import { checkOptions, checkShapes } from "./check.ts";

/** Log-probabilities of pairs of answers, each [N]. */
export interface AnswerPairs {
  /** The answers that were preferred. */
  readonly chosen: Tensor;
  readonly rejected: Tensor;
}

/** {@link AnswerPairs} by the model that is trained, and by the model that it starts from. */
export interface ReferredPairs extends AnswerPairs {
  readonly referenceChosen: Tensor;
  readonly referenceRejected: Tensor;
}

/**
 * The loss of a reward model: −ln of the probability that the chosen answer wins, by Bradley and Terry's model.
 * @param chosen - rewards of the preferred answers, [N]
 * @param rejected - rewards of the others, [N]
 * @param margins - [N], by how much the chosen one is better, in units of the reward. Default: 0
 * @returns a scalar, in nats
 * @see Ouyang et al. 2022, https://arxiv.org/abs/2203.02155; margins: Touvron et al. 2023, https://arxiv.org/abs/2307.09288
 */
export function rewardModelLoss(chosen: Tensor, rejected: Tensor, margins?: Tensor): Tensor {
  checkShapes("rewardModelLoss", { chosen, rejected, margins });
  const difference = chosen.sub(rejected);
  return (margins === undefined ? difference : difference.sub(margins)).logSigmoid().mean().neg();
}

/**
 * The loss of direct preference optimization. `beta` is how much a departure from the reference costs (default: 0.1),
 * `labelSmoothing` the share of pairs that are the wrong way round (default: 0; Mitchell 2023, https://ericmitchell.ai/cdpo.pdf).
 * @param pairs - sums over each answer's tokens
 * @returns a scalar, in nats
 * @see Rafailov et al. 2023, https://arxiv.org/abs/2305.18290
 */
export function dpoLoss(
  pairs: ReferredPairs,
  options: { readonly beta?: number; readonly labelSmoothing?: number } = {},
): Tensor {
  checkOptions("dpoLoss", options, { beta: true, labelSmoothing: true });
  const { beta = 0.1, labelSmoothing = 0 } = options;
  const margins = logRatioMargins("dpoLoss", pairs).mul(beta);
  const loss = margins
    .logSigmoid()
    .mul(1 - labelSmoothing)
    .neg();
  const smoothed = labelSmoothing === 0 ? loss : loss.sub(margins.neg().logSigmoid().mul(labelSmoothing));
  return smoothed.mean();
}

/**
 * The loss of identity preference optimization, which does not drive margins to infinity. `beta` is the paper's τ (default: 0.1).
 * @param pairs - sums over each answer's tokens; means, where answers differ much in length
 * @returns a scalar
 * @see Azar et al. 2023, https://arxiv.org/abs/2310.12036
 */
export function ipoLoss(pairs: ReferredPairs, options: { readonly beta?: number } = {}): Tensor {
  checkOptions("ipoLoss", options, { beta: true });
  const { beta = 0.1 } = options;
  return logRatioMargins("ipoLoss", pairs)
    .sub(1 / (2 * beta))
    .square()
    .mean();
}

/** Answers that were marked one by one, each [N]. */
export interface MarkedAnswers {
  /** Sums over each answer's tokens, by the model that is trained. */
  readonly logProbs: Tensor;
  readonly referenceLogProbs: Tensor;
  /** 1: a good answer; 0: a bad one. */
  readonly isGood: Tensor;
}

/** Options of {@link ktoLoss}. */
export interface KtoOptions {
  /** Default: 0.1. */
  readonly beta?: number;
  /**
   * The KL divergence from the reference, a scalar that is not trained: the mean of ln(policy / reference) of answers that
   * belong to other prompts, at least 0. Default: 0.
   */
  readonly kl?: Tensor;
  /** Weights of good and of bad answers. Default: 1. */
  readonly goodWeight?: number;
  readonly badWeight?: number;
}

/**
 * The loss of Kahneman–Tversky optimization, which needs no pairs.
 * @returns a scalar
 * @see Ethayarajh et al. 2024, https://arxiv.org/abs/2402.01306
 */
export function ktoLoss(
  { logProbs, referenceLogProbs, isGood }: MarkedAnswers,
  options: KtoOptions = {},
): Tensor {
  checkOptions("ktoLoss", options, { beta: true, kl: true, goodWeight: true, badWeight: true });
  checkShapes("ktoLoss", { logProbs, referenceLogProbs, isGood });
  const { beta = 0.1, kl, goodWeight = 1, badWeight = 1 } = options;
  const logRatios = logProbs.sub(referenceLogProbs);
  const gains = kl === undefined ? logRatios : logRatios.sub(kl.detach().clampMin(0));
  const good = isGood.to(logProbs.dtype);
  // 1 − σ(β · gain) of a good answer, and of its opposite for a bad one.
  const signs = good.mul(2).sub(1);
  const weights = good.mul(goodWeight - badWeight).add(badWeight);
  return gains.mul(signs).mul(-beta).sigmoid().mul(weights).mean();
}

/**
 * The loss of odds-ratio preference optimization, which needs no reference: it trains the chosen answers and lowers the odds
 * of the others. `lambda` is the weight of the odds ratio (default: 0.1).
 * @param pairs - means over each answer's tokens
 * @returns a scalar, in nats. Its first part is the mean over texts of the chosen answers' loss, whatever their lengths; for
 *   another add your own and subtract `chosen.mean()`
 * @see Hong et al. 2024, https://arxiv.org/abs/2403.07691
 */
export function orpoLoss(
  { chosen, rejected }: AnswerPairs,
  options: { readonly lambda?: number } = {},
): Tensor {
  checkOptions("orpoLoss", options, { lambda: true });
  const { lambda = 0.1 } = options;
  checkShapes("orpoLoss", { chosen, rejected });
  const logOdds = logOddsOf(chosen).sub(logOddsOf(rejected));
  return chosen.mean().neg().sub(logOdds.logSigmoid().mean().mul(lambda));
}

/** ln(p / (1 − p)) of p = exp(logProbs) < 1. */
function logOddsOf(logProbs: Tensor): Tensor {
  return logProbs.sub(ops.log1p(logProbs.exp().neg()));
}

/** ln(policy / reference) of the chosen answers, less that of the rejected ones. */
function logRatioMargins(where: string, pairs: ReferredPairs): Tensor {
  const { chosen, rejected, referenceChosen, referenceRejected } = pairs;
  checkShapes(where, { chosen, rejected, referenceChosen, referenceRejected });
  return chosen.sub(rejected).sub(referenceChosen.sub(referenceRejected));
}
