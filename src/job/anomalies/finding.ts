import type { Anomaly, Policy, StepAnomaly } from "./rules.ts";

/** An anomaly, and the policy that applies to it. Plain data. */
export interface Finding {
  readonly anomaly: Anomaly;
  /** The measured value: nats, a norm, or milliseconds. */
  readonly value: number;
  /** The limit that it passed. */
  readonly limit: number;
  /** The rank with the anomaly, if it is one rank's. */
  readonly rank?: number | undefined;
  /** The first block with such a gradient, for a gradient. */
  readonly block?: string | undefined;
  readonly policy: Policy;
}

/** A {@link Finding} in the figures of one step. */
export interface StepFinding extends Finding {
  readonly anomaly: StepAnomaly;
  /** Updates skipped in a row, this step's included; 0 if it is not skipped. */
  readonly numSkipped: number;
}
