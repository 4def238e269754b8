export { AnomalyReview } from "./anomaly-review.ts";
export { BestStates, type Measured } from "./best-states.ts";
export {
  type Accumulated,
  type CallKinds,
  CallLog,
  type CallReader,
  FailedCall,
  type LiveCall,
  type LoadedModel,
  LoadedState,
  modelClosed,
  type ProgramCall,
  type SteppedModel,
} from "./call-log.ts";
export { AlikeSteps, checkAlike } from "./check-alike.ts";
export { type EvaluatedLoss, Evaluation, evaluationOrders } from "./evaluation.ts";
export { Pipeline } from "./pipeline.ts";
export { over, RunControl, type SavedState, type SaveRequest } from "./run-control.ts";
export type { RunListener } from "./run-listener.ts";
export { type BegunSave, type SaveReasons, Saving, sliceWriters } from "./saving.ts";
export { type CallOrders, ScriptedCalls } from "./scripted-calls.ts";
export { type StepDone, StepReport } from "./step-report.ts";
