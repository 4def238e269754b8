export { AdamW, type AdamWOptions, type AdamWSpec } from "./adamw.ts";
export { clipGradNorm } from "./clip.ts";
export { type OptimizerSpec, updateRuleOf } from "./optimizer.ts";
export type { Decay, GroupRule, NamedShapes, ParameterGroup } from "./parameter-groups.ts";
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
  Stretch,
  UpdateRule,
  UpdateStep,
} from "./update-rule.ts";
