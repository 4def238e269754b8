/** Finds anomalies in a run's figures and decides what to do about them; independent of actors. */
export type * from "./finding.ts";
export { LossRecord } from "./recent-losses.ts";
export * from "./rules.ts";
export * from "./step-error.ts";
export { type StepFigures, StepJudge } from "./step-judge.ts";
export * from "./stragglers.ts";
