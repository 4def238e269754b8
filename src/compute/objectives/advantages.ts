import { ops, type Tensor } from "../tensor/index.ts";
import { argument, checkChoice, checkOptions, checkShapes, widened, withoutGraph } from "./check.ts";
import { klEstimate } from "./log-probs.ts";

/** Options of {@link groupAdvantages}. */
export interface GroupOptions {
  /**
   * The deviation that advantages are divided by: of the prompt's rewards, of all rewards (Hu et al. 2025,
   * https://arxiv.org/abs/2501.03262), or none (Dr. GRPO, Liu et al. 2025, https://arxiv.org/abs/2503.20783). Default: group.
   */
  readonly divideBy?: "group" | "batch" | "none";
  /** Is added to the deviation. Default: 1e-4. */
  readonly epsilon?: number;
}

/**
 * GRPO's advantages: each reward less the mean of its prompt's, divided by their deviation.
 * @param rewards - [N], the samples of a prompt one after the other
 * @param samples - of each prompt
 * @returns [N]
 * @throws {TroupeError} `TENSOR_ARGUMENT` unless the rewards are of complete groups, or for an option that it does not have
 * @see Shao et al. 2024, https://arxiv.org/abs/2402.03300
 */
export function groupAdvantages(rewards: Tensor, samples: number, options: GroupOptions = {}): Tensor {
  checkOptions("groupAdvantages", options, { divideBy: true, epsilon: true });
  const { divideBy = "group", epsilon = 1e-4 } = options;
  checkChoice("groupAdvantages", "to divide by", divideBy, ["group", "batch", "none"]);
  return withoutGraph(() => {
    const groups = groupsOf("groupAdvantages", rewards, samples);
    const centered = groups.sub(groups.mean([-1], false).unsqueeze(-1));
    if (divideBy === "none") return centered.reshape([-1]);
    const deviation = deviationOf(divideBy === "batch" ? groups.reshape([1, -1]) : groups);
    return centered.div(deviation.add(epsilon)).reshape([-1]);
  });
}

/**
 * RLOO's advantages: each reward less the mean of the other samples of its prompt.
 * @param rewards - [N], the samples of a prompt one after the other
 * @param samples - of each prompt, at least 2
 * @returns [N]
 * @throws {TroupeError} `TENSOR_ARGUMENT` unless the rewards are of complete groups
 * @see Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740
 */
export function leaveOneOutAdvantages(rewards: Tensor, samples: number): Tensor {
  if (samples < 2) throw argument("leaveOneOutAdvantages", "at least 2 samples of a prompt", samples);
  return withoutGraph(() => {
    const groups = groupsOf("leaveOneOutAdvantages", rewards, samples);
    const others = groups
      .sum([-1], true)
      .sub(groups)
      .div(samples - 1);
    return groups.sub(others).reshape([-1]);
  });
}

/** Texts as REINFORCE++ and PPO reward them. */
export interface RewardedTexts {
  /** [N], of the texts. */
  readonly rewards: Tensor;
  /** [N, T], at the time of the texts. */
  readonly logProbs: Tensor;
  readonly referenceLogProbs: Tensor;
  /** [N, T]; 1 at the tokens that the policy wrote. */
  readonly mask: Tensor;
}

/**
 * The rewards of single tokens: −klFactor · ln(policy / reference) at each, and at a text's last its own reward too.
 * @returns [N, T], 0 where the mask is
 * @see Stiennon et al. 2020, https://arxiv.org/abs/2009.01325
 */
export function tokenRewards(
  { rewards, logProbs, referenceLogProbs, mask }: RewardedTexts,
  klFactor: number,
): Tensor {
  checkShapes("tokenRewards", { mask, logProbs, referenceLogProbs });
  return withoutGraph(() => {
    const counted = mask.to(logProbs.dtype);
    const penalties = klEstimate(logProbs, referenceLogProbs, "k1").mul(counted).mul(-klFactor);
    // Counted from the end, the last token is the first.
    const isLast = counted.flip([-1]).cumsum(-1).flip([-1]).eq(1).to(logProbs.dtype).mul(counted);
    return penalties.add(isLast.mul(rewards.unsqueeze(-1)));
  });
}

/**
 * REINFORCE++'s advantages: the sum of a token's rewards from there on, less the mean of all tokens and divided by their
 * deviation. For `klFactor`, 0.01 unless given, see {@link tokenRewards}.
 * @returns [N, T], 0 where the mask is
 * @see Hu et al. 2025, https://arxiv.org/abs/2501.03262
 */
export function reinforcePlusPlusAdvantages(
  texts: RewardedTexts,
  options: { readonly klFactor?: number } = {},
): Tensor {
  checkOptions("reinforcePlusPlusAdvantages", options, { klFactor: true });
  const { klFactor = 0.01 } = options;
  return withoutGraph(() => {
    const { mask } = texts;
    const rewards = tokenRewards(texts, klFactor);
    const values = rewards.zerosLike();
    const { returns } = generalizedAdvantages({ rewards, values, mask }, { gamma: 1, lambda: 1 });
    return whitened(returns, mask);
  });
}

/** Rewards and values of tokens, each [N, T]. */
export interface ValuedTexts {
  /** @see tokenRewards */
  readonly rewards: Tensor;
  /** The value model's expectation at each token. */
  readonly values: Tensor;
  /** 1 at the tokens that the policy wrote. */
  readonly mask: Tensor;
}

/**
 * Generalized advantage estimation, over the tokens that the policy wrote. `gamma` discounts a later reward (default: 1); with
 * `lambda` 0 an advantage is of one step, with 1 of all that follow (default: 0.95).
 * @returns `advantages`, and `returns`, which are advantages + values: both [N, T], 0 where the mask is
 * @see Schulman et al. 2015, https://arxiv.org/abs/1506.02438
 */
export function generalizedAdvantages(
  { rewards, values, mask }: ValuedTexts,
  options: { readonly gamma?: number; readonly lambda?: number } = {},
): { readonly advantages: Tensor; readonly returns: Tensor } {
  checkOptions("generalizedAdvantages", options, { gamma: true, lambda: true });
  const { gamma = 1, lambda = 0.95 } = options;
  checkShapes("generalizedAdvantages", { rewards, values, mask });
  return withoutGraph(() => {
    const counted = mask.to(rewards.dtype);
    const [numTexts = 0, length = 0] = rewards.shape;
    let next = ops.zeros([numTexts], rewards.dtype);
    let advantage = next;
    const columns: Tensor[] = [];
    for (let index = length - 1; index >= 0; index--) {
      const at = (of: Tensor) => of.select(1, index);
      const isCounted = at(counted);
      const error = at(rewards).add(next.mul(gamma)).sub(at(values));
      const here = error.add(advantage.mul(gamma * lambda));
      // A token that the policy did not write is passed over.
      advantage = advantage.lerp(here, isCounted);
      next = next.lerp(at(values), isCounted);
      columns.unshift(here.mul(isCounted));
    }
    const advantages = ops.stack(columns, 1);
    return { advantages, returns: advantages.add(values).mul(counted) };
  });
}

/**
 * Values less the mean of those that count, divided by their deviation.
 * @param values - [N, T]
 * @param mask - [N, T]
 * @returns [N, T], 0 where the mask is
 */
export function whitened(values: Tensor, mask: Tensor): Tensor {
  checkShapes("whitened", { values, mask });
  return withoutGraph(() => {
    const counted = mask.to(values.dtype);
    const count = counted.sum().clampMin(1);
    const centered = values.sub(values.mul(counted).sum().div(count)).mul(counted);
    const variance = centered.square().sum().div(count.sub(1).clampMin(1));
    return centered.div(variance.add(1e-8).sqrt());
  });
}

/**
 * DAPO's penalty of texts near the limit of length: from 0, `buffer` tokens before it, to −1 at it, on a straight line. With a
 * buffer of 0 it is 0 up to the limit, and −1 beyond it.
 * @param lengths - [N], tokens that the policy wrote
 * @returns [N], to be added to the rewards
 * @throws {TroupeError} `TENSOR_ARGUMENT` for a negative buffer, or an option that it does not have
 * @see Yu et al. 2025, https://arxiv.org/abs/2503.14476
 */
export function overlongPenalties(
  lengths: Tensor,
  options: { readonly maxTokens: number; readonly buffer: number },
): Tensor {
  checkOptions("overlongPenalties", options, { maxTokens: true, buffer: true });
  const { maxTokens, buffer } = options;
  if (!(buffer >= 0)) throw argument("overlongPenalties", "a buffer of 0 or more tokens", buffer);
  return withoutGraph(() => {
    const left = widened(lengths)
      .neg()
      .add(maxTokens - buffer);
    // The limit itself would be 0 / 0.
    return buffer === 0 ? left.sign().clampMax(0) : left.div(buffer).clamp(-1, 0);
  });
}

function groupsOf(where: string, rewards: Tensor, samples: number): Tensor {
  if (rewards.ndim !== 1 || rewards.numel % samples !== 0)
    throw argument(where, `rewards [N] of groups of ${samples}`, `[${rewards.shape}]`);
  return rewards.reshape([-1, samples]);
}

/** The unbiased deviation of each row, [R, 1]; 0 of one value. */
function deviationOf(values: Tensor): Tensor {
  return values.std([-1], (values.shape[1] ?? 0) > 1 ? 1 : 0, true);
}
