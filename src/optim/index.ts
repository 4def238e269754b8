export { AdamW, type AdamWOptions, type AdamWSpec } from "./adamw.ts";
export { type ClipRule, clipFactor, clipGradNorm, clipRuleOf } from "./clip.ts";
export {
  type BMTrainLossScale,
  initialLossScale,
  type LossScaleRule,
  type LossScaleState,
  type MegatronLossScale,
  nextLossScale,
  type StaticLossScale,
  type TorchLossScale,
} from "./loss-scale.ts";
export { checkOptimizers, type OptimizerSpec, updateRuleOf } from "./optimizer.ts";
export type { Decay, GroupRule, NamedShapes, ParameterGroup } from "./parameter-groups.ts";
export { advanceProgress, beginProgress, type OptimizerProgress } from "./progress.ts";
export {
  Constant,
  Cosine,
  type DecayOptions,
  LinearDecay,
  Noam,
  type Peak,
  type Schedule,
  type WarmupOptions,
} from "./schedule.ts";
export { type AdamWMoments, type StepLocalOptions, stepLocal } from "./step-local.ts";
export type {
  FlatPiece,
  OwnedStretch,
  Segments,
  StateLayout,
  StochasticRounding,
  Stretch,
  UpdateRule,
  UpdateStep,
} from "./update-rule.ts";
