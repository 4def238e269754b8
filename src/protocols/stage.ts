import type { TensorRef } from "../tensor/index.ts";

/** What neighbouring stages tell each other; `pass` names one micro-batch on its way into one chunk. */
export type StageLinkProtocol = {
  /** What one stage computed, for the next: every tensor among the arguments of its first block, in order. */
  activation: {
    in: { pass: string; tensors: readonly TensorRef[]; asking: readonly boolean[] };
  };
  /** Gradients of those that asked for one, in order; null where one had no influence on the loss. */
  gradient: { in: { pass: string; gradients: readonly (TensorRef | null)[] } };
  /** What the last stage computed, for all others: plain data with refs in place of tensors. */
  result: { in: { pass: string; value: unknown } };
};
