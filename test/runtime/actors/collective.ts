import { defineActor } from "../../../src/runtime/index.ts";
import { waitAtGate } from "./shared-words.ts";

/** Gets stuck in what stands for a collective operation. */
export type CollectiveProtocol = { allReduce: { in: { gate: string; sequence: number } } };

export default defineActor<CollectiveProtocol>({
  start(context) {
    return {
      handlers: {
        allReduce({ gate, sequence }) {
          context.board.set("all_reduce", "layers.3", sequence);
          context.emit(`entered ${sequence}`);
          context.flush();
          waitAtGate(gate);
        },
      },
    };
  },
});
