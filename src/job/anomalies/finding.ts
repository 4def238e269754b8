import type { Anomaly, Policy, StepAnomaly } from "./rules.ts";

/** An anomaly that was found, and what is to be done about it. Plain data. */
export interface Finding {
  readonly anomaly: Anomaly;
  /** What was measured: nats, a norm, or milliseconds. */
  readonly value: number;
  /** What it should not have passed. */
  readonly limit: number;
  /** The rank it was seen on, where it is of one rank. */
  readonly rank?: number | undefined;
  /** The first block with such a gradient, where it is of one. */
  readonly block?: string | undefined;
  readonly policy: Policy;
}

/** A {@link Finding} in one step's figures. */
export interface StepFinding extends Finding {
  readonly anomaly: StepAnomaly;
  /** How many steps in a row are left out now, this one included; 0 where it is not. */
  readonly numSkipped: number;
}
