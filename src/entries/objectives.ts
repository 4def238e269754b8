/** `troupe/objectives`: losses and advantages of post-training, and the order of its rollouts. */

import "../errors/node-version.ts";

export {
  type AnswerPairs,
  type DistillationOptions,
  distillationLoss,
  dpoLoss,
  type GroupOptions,
  generalizedAdvantages,
  groupAdvantages,
  ipoLoss,
  type KlEstimator,
  type KtoOptions,
  klEstimate,
  ktoLoss,
  leaveOneOutAdvantages,
  type MarkedAnswers,
  orpoLoss,
  overlongPenalties,
  type PolicyOptions,
  policyLoss,
  type RatedTexts,
  type ReferredPairs,
  type RewardedTexts,
  reinforcePlusPlusAdvantages,
  rewardModelLoss,
  type TokenValues,
  textLogProbs,
  tokenLogProbs,
  tokenRewards,
  tokenWeights,
  type ValuedTexts,
  valueLoss,
  weighedMean,
  whitened,
} from "../compute/objectives/index.ts";
export { type Rollout, type RolloutOptions, rollouts } from "../job/index.ts";
