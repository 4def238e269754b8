export { Adafactor, type AdafactorOptions, type AdafactorSpec } from "./adafactor.ts";
export {
  Adam,
  type AdamOptions,
  type AdamSpec,
  AdamW,
  type AdamWOptions,
  type AdamWSpec,
  BMTrainAdam,
  type BMTrainAdamOptions,
} from "./adam.ts";
export * from "./clip.ts";
export {
  type Exchange,
  joined,
  largestOf,
  maximaOf,
  placesOf,
  squareSumsOf,
  summed,
} from "./complete-parameter.ts";
export { LAMB, type LAMBOptions, type LAMBSpec } from "./lamb.ts";
export { Lion, type LionOptions, type LionSpec } from "./lion.ts";
export type { LocalState } from "./local-updates.ts";
export { initialLossScale, type LossScaleRule, nextLossScale } from "./loss-scale.ts";
export { checkOptimizers, type OptimizerSpec, updateRuleOf } from "./optimizer.ts";
export { defineOptimizer, loadOptimizers, type OwnSpec } from "./own-optimizer.ts";
export {
  type Decay,
  type GroupRule,
  matchesName,
  type NamedShapes,
  type ParameterGroup,
} from "./parameter-groups.ts";
export type { OptimizerOptions } from "./parameter-options.ts";
export * from "./progress.ts";
export {
  Constant,
  Cosine,
  type CosineOptions,
  type DecayOptions,
  Exponential,
  LinearDecay,
  Noam,
  type Peak,
  rateAt,
  type Schedule,
  type WarmupOptions,
} from "./schedule.ts";
export * from "./schedule-peers.ts";
export { SGD, type SGDOptions, type SGDSpec } from "./sgd.ts";
export * from "./step-local.ts";
export type {
  DeviceScales,
  FlatPiece,
  OwnedStretch,
  OwnRule,
  Segments,
  StateLayout,
  StochasticRounding,
  Stretch,
  UpdateRule,
  UpdateShare,
  UpdateStep,
} from "./update-rule.ts";
export { ALL_PARTS, elementwise, segmentsOf, stateTensor } from "./update-rule.ts";
