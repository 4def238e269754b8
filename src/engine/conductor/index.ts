export { AgreedTraining } from "./agreed-training.ts";
export { AnomalyReview } from "./anomaly-review.ts";
export { checkAlike } from "./check-alike.ts";
export { type EvaluatedLoss, Evaluation, evaluationOrders } from "./evaluation.ts";
export { Pipeline } from "./pipeline.ts";
export { over, RunControl, type SavedState, type SaveRequest } from "./run-control.ts";
export type { RunListener } from "./run-listener.ts";
export { type BegunSave, type SaveReasons, Saving } from "./saving.ts";
export { type StepDone, StepReport } from "./step-report.ts";
