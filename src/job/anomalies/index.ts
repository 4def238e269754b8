/** What of a run's figures is out of the ordinary, and what is done about it; knows no actors. The only door of this room. */
export type { Finding, StepFinding } from "./finding.ts";
export { LossRecord } from "./recent-losses.ts";
export {
  type Anomaly,
  type AnomalyRules,
  DEFAULT_RULES,
  maySkip,
  type Policy,
  type StepAnomaly,
} from "./rules.ts";
export { anomalyError, RewindRequest } from "./step-error.ts";
export { type StepFigures, StepJudge } from "./step-judge.ts";
export { StragglerWatch } from "./stragglers.ts";
