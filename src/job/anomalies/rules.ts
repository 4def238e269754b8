/** Anomalies of a step. */
export type StepAnomaly = "loss-not-finite" | "gradient-not-finite" | "loss-spike";

/** Anomalies of a run. */
export type Anomaly = StepAnomaly | "straggler";

/** Reaction to an anomaly: report only; end the run; skip the update; or return to the last good state and skip the batches since. */
export type Policy = "tell" | "stop" | "skip" | "rewind";

/** Limits above which figures count as anomalies, and the policies. Plain data. */
export interface AnomalyRules {
  readonly policies: Readonly<Record<Anomaly, Policy>>;
  /** A loss that is this many deviations above the median of recent losses is a spike. */
  readonly spikeDeviations: number;
  /** A rank that computes this many times longer than usual may be a straggler. */
  readonly stragglerFactor: number;
  /** Slow steps in a row that make a rank a straggler. */
  readonly stragglerSteps: number;
}

/** Rules of runs without options for anomalies. */
export const DEFAULT_RULES: AnomalyRules = {
  policies: {
    // An update that is not finite would destroy the model.
    "loss-not-finite": "stop",
    "gradient-not-finite": "stop",
    "loss-spike": "tell",
    straggler: "tell",
  },
  spikeDeviations: 8,
  stragglerFactor: 2,
  // On a machine with more threads than cores any rank may be slow for a few steps.
  stragglerSteps: 10,
};

/** @returns whether a policy may skip a step; then no update starts before the step is judged */
export function maySkip({ policies }: AnomalyRules): boolean {
  return Object.values(policies).includes("skip");
}
