import { defineActor } from "../../../src/runtime/index.ts";

/** Gets stuck in what stands for a collective operation. */
export type CollectiveProtocol = { allReduce: { in: { gate: Int32Array; sequence: number } } };

export default defineActor<CollectiveProtocol>({
  start(context) {
    return {
      handlers: {
        allReduce({ gate, sequence }) {
          context.board.set("all_reduce", "layers.3", sequence);
          context.emit(`entered ${sequence}`);
          context.flush();
          Atomics.wait(gate, 0, 0);
        },
      },
    };
  },
});
