/** Finds anomalies in a run's figures and decides what to do about them; independent of actors. */
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
