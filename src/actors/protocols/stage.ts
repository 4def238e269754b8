import type { Carried } from "../../compute/collectives/index.ts";

/** What neighbouring stages tell each other: `from`, the stage that does; `pass` names one micro-batch on its way into one chunk. */
export type StageLinkProtocol = {
  /** What one stage computed, for the next: every tensor among the arguments of its first block, in order. */
  activation: {
    in: { from: number; pass: string; tensors: readonly Carried[]; asking: readonly boolean[] };
  };
  /** Gradients of those that asked for one, in order; null where one had no influence on the loss. */
  gradient: { in: { from: number; pass: string; gradients: readonly (Carried | null)[] } };
  /** What the last stage computed, for all others: plain data with what is carried in place of tensors. */
  result: { in: { from: number; pass: string; value: unknown } };
};
