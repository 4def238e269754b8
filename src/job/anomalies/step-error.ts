import { type ErrorSentence, TroupeError } from "../../errors/index.ts";
import type { Finding } from "./finding.ts";
import type { Anomaly } from "./rules.ts";

const CODES = {
  "loss-not-finite": "LOSS_NOT_FINITE",
  "gradient-not-finite": "GRADIENT_NOT_FINITE",
  "loss-spike": "LOSS_SPIKE",
  straggler: "STRAGGLER",
} as const satisfies Record<Anomaly, string>;

/** The error of a run that an anomaly ends. @param step - counted from 0 */
export function anomalyError(step: number, finding: Finding & { readonly numSkipped?: number }): TroupeError {
  const { anomaly, value, limit, rank, block, numSkipped = 0 } = finding;
  const inARow = numSkipped > 1 ? ` ${numSkipped} steps in a row` : "";
  const where = block === undefined ? "" : `, first in block ${block}`;
  const onRank = rank === undefined ? "" : ` on rank ${rank}`;
  const says: Record<Anomaly, Omit<ErrorSentence, "where">> = {
    "loss-not-finite": {
      expected: `a finite loss${onRank}`,
      got: `${value}${inARow}`,
      hint: "lower the learning rate, clip gradients, or look at the batch",
    },
    "gradient-not-finite": {
      expected: "a finite gradient norm",
      got: `${value}${inARow}${where}`,
      hint: "lower the learning rate, or look at the batch",
    },
    "loss-spike": {
      expected: `a loss of at most ${limit.toPrecision(5)}, as those before it`,
      got: `${value.toPrecision(5)}${inARow}`,
      hint: "lower the learning rate, or look at the batch",
    },
    straggler: {
      expected: `at most ${limit.toFixed(0)} ms of computing${onRank}`,
      got: value.toFixed(0),
      hint: "look at its machine",
    },
  };
  return new TroupeError(CODES[anomaly], {
    where: `step ${step + 1}`,
    ...says[anomaly],
    fields: { step, rank, block, value: String(value), limit: String(limit) },
  });
}

/** Thrown to end a generation of the rank group so that the run can go back. Not an error: only the trainer's recovery catches it. */
export class RewindRequest {
  /** The step that went wrong, counted from 0. */
  readonly step: number;
  /** The error of the run if it cannot go back. */
  readonly reason: TroupeError;

  constructor(step: number, reason: TroupeError) {
    this.step = step;
    this.reason = reason;
  }
}
