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
export type { EvaluatedLoss } from "./evaluation.ts";
export { Evaluator } from "./evaluator.ts";
export { Pipeline } from "./pipeline.ts";
export { RequestedSaves } from "./requested-saves.ts";
export { over, RunControl, type SavedState, type SaveRequest } from "./run-control.ts";
export type { RunListener } from "./run-listener.ts";
export { Saving, sliceWriters } from "./saving.ts";
export { type CallOrders, ScriptedCalls } from "./scripted-calls.ts";
export { StepOrders } from "./step-orders.ts";
export { type StepDone, StepReport } from "./step-report.ts";
