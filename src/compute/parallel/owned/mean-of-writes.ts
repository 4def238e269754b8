import { ALL_PARTS, type UpdateRule } from "../../optim/index.ts";
import { ops, scope } from "../../tensor/index.ts";
import { COUNT_NUMEL } from "../blocks/flat-block.ts";

/**
 * How a step changes buffers: each becomes the mean of all that was written to it, and stays as it is where nothing was.
 * Takes in place of a gradient what {@link BufferWrites} hands on, summed over the replicas; no clipping, no learning rate.
 */
export const meanOfWrites: UpdateRule = {
  groups: [],
  exchanges: false,
  updatesPartOf: ALL_PARTS,
  stateOf: () => [],
  *update({ stretches }) {
    for (const { pieces, master, gradient: writes } of stretches) {
      scope(() => {
        // Every rank keeps the whole block: pieces are whole buffers.
        for (const { rangeBegin, numel } of pieces) {
          const count = writes.narrow(0, rangeBegin + numel, COUNT_NUMEL);
          const value = master.narrow(0, rangeBegin, numel);
          const mean = writes.narrow(0, rangeBegin, numel).div(count);
          value.copy_(ops.where(count.gt(0), mean, value));
        }
      });
    }
  },
};
