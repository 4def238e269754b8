import { defineActor } from "../../../src/runtime/index.ts";
import { waitAtGate } from "./shared-words.ts";

/** Gets stuck in a stand-in for a collective operation. */
export type CollectiveProtocol = {
  allReduce: { in: { gate: string; sequence: number } };
  /** The same, behind an `await`, where its actor seems idle. */
  allReduceLater: { in: { gate: string; sequence: number } };
};

export default defineActor<CollectiveProtocol>({
  concurrent: ["allReduceLater"],
  start(context) {
    const allReduce = ({ gate, sequence }: { gate: string; sequence: number }): void => {
      context.board.set("all_reduce", "layers.3", sequence);
      context.emit(`entered ${sequence}`);
      context.flush();
      waitAtGate(gate);
    };
    return {
      handlers: {
        allReduce,
        async allReduceLater(message) {
          await Promise.resolve();
          allReduce(message);
        },
      },
    };
  },
});
