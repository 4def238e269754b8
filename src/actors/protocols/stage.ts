import type { Carried } from "../../compute/collectives/index.ts";

/** Messages between pipeline stages. `from`: the sending stage; `pass`: names one micro-batch on its way into one chunk. */
export type StageLinkProtocol = {
  /** A stage's output, for the next: every tensor among the arguments of the next stage's first block, in order. */
  activation: { in: { from: number; pass: string; tensors: readonly Carried[]; asking: readonly boolean[] } };
  /** Gradients of the tensors in `asking`, in order; null where one had no influence on the loss. */
  gradient: { in: { from: number; pass: string; gradients: readonly (Carried | null)[] } };
  /** The last stage's result, for all others: plain data with handles in place of tensors. */
  result: { in: { from: number; pass: string; value: unknown } };
};
