export { AnomalyReview } from "./anomaly-review.ts";
export { checkAlike } from "./check-alike.ts";
export { type EvaluatedLoss, Evaluation, evaluationOrders } from "./evaluation.ts";
export { Pipeline } from "./pipeline.ts";
export { Saving, type SavingRules } from "./saving.ts";
export { type StepDone, StepReport } from "./step-report.ts";
