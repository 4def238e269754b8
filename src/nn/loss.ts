import { full, ops, type Tensor } from "../tensor/index.ts";

/** The target that counts for nothing. */
export const IGNORE_INDEX = -100;

/**
 * Mean cross entropy in nats over the rows whose target is not {@link IGNORE_INDEX}; NaN where none is left.
 * @param logits - [..., V], float
 * @param targets - [...], int64, each in [0, V) or ignored
 * @returns float32 scalar
 */
export function crossEntropy(logits: Tensor, targets: Tensor): Tensor {
  const numClasses = logits.shape.at(-1) ?? 0;
  return ops.troupe.crossEntropy(logits.reshape([-1, numClasses]), targets.reshape([-1]), IGNORE_INDEX);
}

/**
 * {@link crossEntropy} of `hidden · weightᵀ` in chunks of rows, so that the logits never exist as a whole. The
 * gradients are made in the forward pass.
 * @param hidden - [..., D], float
 * @param weight - [V, D], the unembedding
 * @param targets - [...], int64, each in [0, V) or ignored
 * @returns float32 scalar
 */
export function linearCrossEntropy(hidden: Tensor, weight: Tensor, targets: Tensor): Tensor {
  const width = hidden.shape.at(-1) ?? 0;
  return ops.troupe.linearCrossEntropy(
    hidden.reshape([-1, width]),
    weight,
    targets.reshape([-1]),
    IGNORE_INDEX,
  );
}

/**
 * Labels that are the inputs themselves, turned into targets of the next position: shifted left by one, the last
 * position ignored.
 * @param labels - [B, T], int64
 * @returns [B, T], int64
 */
export function shiftLabels(labels: Tensor): Tensor {
  const [batch = 0, length = 0] = labels.shape;
  const last = full([batch, Math.min(length, 1)], IGNORE_INDEX, { dtype: "int64" }); // [B, 1]
  return ops.cat([labels.narrow(1, Math.min(length, 1), Math.max(length - 1, 0)), last], 1); // [B, T]
}
