/** Losses and advantages of post-training: pure functions of log-probabilities, logits and rewards. */

export {
  type GroupOptions,
  generalizedAdvantages,
  groupAdvantages,
  leaveOneOutAdvantages,
  overlongPenalties,
  type RewardedTexts,
  reinforcePlusPlusAdvantages,
  tokenRewards,
  type ValuedTexts,
  whitened,
} from "./advantages.ts";
export { type DistillationOptions, distillationLoss } from "./distillation.ts";
export {
  type KlEstimator,
  klEstimate,
  rowLogProbs,
  textLogProbs,
  tokenLogProbs,
  tokenWeights,
  weighedMean,
} from "./log-probs.ts";
export {
  type PolicyOptions,
  policyLoss,
  type RatedTexts,
  type TokenValues,
  valueLoss,
} from "./policy.ts";
export {
  type AnswerPairs,
  dpoLoss,
  ipoLoss,
  type KtoOptions,
  ktoLoss,
  type MarkedAnswers,
  orpoLoss,
  type ReferredPairs,
  rewardModelLoss,
} from "./preferences.ts";
