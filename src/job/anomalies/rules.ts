/** What can be wrong with a step. */
export type StepAnomaly = "loss-not-finite" | "gradient-not-finite" | "loss-spike";

/** What can be wrong with a run. */
export type Anomaly = StepAnomaly | "straggler";

/**
 * What is done about an anomaly: it is told and no more; the run ends; the step's update is left out on all ranks; or the
 * run goes back to the last good state and leaves out the batches between.
 */
export type Policy = "tell" | "stop" | "skip" | "rewind";

/** What of a run's figures counts as an anomaly, and what is done about it. Plain data. */
export interface AnomalyRules {
  readonly policies: Readonly<Record<Anomaly, Policy>>;
  /** A loss is a spike where it lies so many deviations over the median of the latest ones. */
  readonly spikeDeviations: number;
  /** A rank is a straggler where it computes for so many times as long as is usual… */
  readonly stragglerFactor: number;
  /** …in so many steps in a row. */
  readonly stragglerSteps: number;
}

/** What runs do that are told nothing else. */
export const DEFAULT_RULES: AnomalyRules = {
  policies: {
    // After an update with what is not a number nothing is left to train.
    "loss-not-finite": "stop",
    "gradient-not-finite": "stop",
    "loss-spike": "tell",
    straggler: "tell",
  },
  spikeDeviations: 8,
  stragglerFactor: 2,
  // On a machine with more threads than cores any rank is slow for a few steps.
  stragglerSteps: 10,
};

/** @returns whether a step may be left out, so that no update may begin before the step has been judged */
export function maySkip({ policies }: AnomalyRules): boolean {
  return Object.values(policies).includes("skip");
}
