import { ALL_PARTS, type UpdateRule } from "../../optim/index.ts";
import { ops, scope } from "../../tensor/index.ts";
import { COUNT_NUMEL } from "../blocks/flat-block.ts";

/**
 * The update of buffers: each becomes the mean of all writes to it, and stays as it is without any. Takes the sums of {@link
 * BufferWrites}, reduced over the replicas, in place of a gradient; no clipping, no learning rate.
 */
export const meanOfWrites: UpdateRule = {
  groups: [],
  exchanges: false,
  updatesPartOf: ALL_PARTS,
  stateOf: () => [],
  *update({ stretches }) {
    for (const { pieces, master, gradient: writes } of stretches)
      scope(() => {
        // Every rank keeps the complete block: each piece is a complete buffer.
        for (const { rangeBegin, numel } of pieces) {
          const count = writes.narrow(0, rangeBegin + numel, COUNT_NUMEL);
          const value = master.narrow(0, rangeBegin, numel);
          const mean = writes.narrow(0, rangeBegin, numel).div(count);
          value.copy_(ops.where(count.gt(0), mean, value));
        }
      });
  },
};
