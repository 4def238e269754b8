import { gradEnabled, isInvariant, noGrad, ops, scope, type Tensor, tensor } from "../tensor/index.ts";
import { argument, checkChoice, checkShapes, widened, withoutGraph } from "./check.ts";

// N texts, T tokens in each, V words.

/**
 * Computes the log-probability of each token, in nats.
 * @param logits - [N, T, V]; float32 and float64 are computed as they are, others in float32
 * @param tokens - int64 [N, T]; negative ones, which are ignored labels, have 0
 * @param temperature - that the tokens were drawn at. Default: 1
 * @returns [N, T]
 */
export function tokenLogProbs(logits: Tensor, tokens: Tensor, temperature = 1): Tensor {
  const wide = widened(logits);
  const scaled = temperature === 1 ? wide : wide.div(temperature);
  const isIgnored = tokens.lt(0);
  const words = tokens.maskedFill(isIgnored, 0);
  const isExact = isInvariant() && wide.dtype === "float32" && wide.device !== "meta";
  const exact = isExact ? exactLogProbs(scaled, words).maskedFill(isIgnored, 0) : undefined;
  if (exact !== undefined && !gradEnabled()) return exact;
  // The probabilities of all words exist only in backward.
  const recorded = scaled.gather(-1, words.unsqueeze(-1)).squeeze(-1).sub(scaled.logsumexp(-1));
  const logProbs = recorded.maskedFill(isIgnored, 0);
  // Its gradients, but not its last bits, which depend on the number of rows: their difference is 0.
  return exact === undefined ? logProbs : exact.add(logProbs.sub(logProbs.detach()));
}

/** Values without gradients, each of its own row alone. @param tokens - int64 [N, T], none negative */
function exactLogProbs(logits: Tensor, tokens: Tensor): Tensor {
  return noGrad(() => {
    const rows = logits.detach().reshape([-1, logits.shape.at(-1) ?? 0]);
    return tensor(rowLogProbs(rows, tokens.reshape([-1]).contiguous()), { shape: tokens.shape });
  });
}

/**
 * Computes the log-probability of a token of each row, in nats: the same bits whatever rows are beside it.
 * @param logits - float32 [R, V]
 * @param tokens - int64 [R]
 */
export function rowLogProbs(logits: Tensor, tokens: Tensor): Float32Array<ArrayBuffer> {
  const [numRows = 0, numTokens = 0] = logits.shape;
  const values = scope(
    () =>
      ops.troupe
        .vocabularyStatistics(logits.contiguous(), tokens, 0, numTokens, -1)
        .toTypedArray() as Float32Array,
  ); // [4, R]
  return Float32Array.from({ length: numRows }, (_, row) => {
    const [most = 0, sum = 1, own = 0] = [0, 1, 2].map((each) => values[each * numRows + row]);
    return own - most - Math.log(sum);
  });
}

/**
 * Gives each token a weight, so that {@link weighedMean} is the mean that `mean` says. Computed from all texts of a step, and
 * cut with them, weights make the loss of a step independent of how the texts are shared by ranks and micro-batches.
 * - `"sequence"`: of the texts, each the mean of its tokens (GRPO, Shao et al. 2024, https://arxiv.org/abs/2402.03300);
 * - `"token"`: of all tokens (DAPO, Yu et al. 2025, https://arxiv.org/abs/2503.14476);
 * - a number: of the texts, each its tokens' sum divided by it, such as the maximum length (Dr. GRPO, Liu et al. 2025,
 *   https://arxiv.org/abs/2503.20783); 1 for sums.
 * @param mask - [N, T]: 1 at the tokens that count, those that the model wrote; 0 elsewhere
 * @returns [N, T]; a text without tokens weighs nothing
 * @throws {TroupeError} `TENSOR_ARGUMENT` for another mean
 */
export function tokenWeights(mask: Tensor, mean: "sequence" | "token" | number): Tensor {
  if (typeof mean !== "number")
    checkChoice("tokenWeights", "a mean by a number,", mean, ["sequence", "token"]);
  else if (!(mean > 0)) throw argument("tokenWeights", "a divisor above 0", mean);
  return withoutGraph(() => {
    const counted = widened(mask);
    if (typeof mean === "number") return counted.div(mean);
    if (mean === "token") return counted.mul(mask.shape[0] ?? 1).div(counted.sum().clampMin(1));
    return counted.div(counted.sum([-1], true).clampMin(1));
  });
}

/**
 * Averages values of tokens over the texts: the mean of each text's Σ weight · value.
 * @param values - [N, T]
 * @param weights - [N, T], see {@link tokenWeights}
 * @returns a scalar
 */
export function weighedMean(values: Tensor, weights: Tensor): Tensor {
  checkShapes("weighedMean", { values, weights });
  return values.mul(weights).sum([-1]).mean();
}

/**
 * Sums the log-probabilities of each text's counted tokens.
 * @param logProbs - [N, T]
 * @param mask - [N, T]: 1 at the tokens that count; or their weights
 * @returns [N]
 */
export function textLogProbs(logProbs: Tensor, mask: Tensor): Tensor {
  checkShapes("textLogProbs", { logProbs, mask });
  return logProbs.mul(mask).sum([-1]);
}

/** An estimate of KL(policy ‖ reference) from one token that the policy drew. */
export type KlEstimator = "k1" | "k2" | "k3";

/**
 * Estimates KL(policy ‖ reference) at each token that the policy drew, with r = reference / policy:
 * `k1` = −ln r, unbiased; `k2` = (ln r)² / 2, of less variance, whose gradient is that of the divergence;
 * `k3` = r − 1 − ln r, unbiased and never negative.
 * @param logProbs - of the policy, any shape
 * @param referenceLogProbs - of the same shape
 * @see Schulman 2020, http://joschu.net/blog/kl-approx.html
 */
export function klEstimate(logProbs: Tensor, referenceLogProbs: Tensor, estimator: KlEstimator): Tensor {
  checkShapes("klEstimate", { logProbs, referenceLogProbs });
  checkChoice("klEstimate", "the estimator", estimator, ["k1", "k2", "k3"]);
  const logRatio = referenceLogProbs.sub(logProbs);
  if (estimator === "k1") return logRatio.neg();
  if (estimator === "k2") return logRatio.square().div(2);
  return logRatio.exp().sub(1).sub(logRatio);
}
