import { type ActorRef, defineActor } from "../../../src/runtime/index.ts";
import type { EchoProtocol } from "./echo.ts";

/** Computes synchronously, as a rank does: takes answers by blocking waits. */
export type BlockerProtocol = {
  sum: { in: { from: ActorRef<EchoProtocol>; count: number }; out: number };
  serve: { in: { count: number }; out: number };
  add: { in: number; out: number };
  hang: { in: { on: ActorRef<EchoProtocol> } };
};

export default defineActor<BlockerProtocol>({
  start(context) {
    return {
      handlers: {
        sum({ from, count }) {
          let sum = 0;
          for (let index = 0; index < count; index++) {
            const pending = context.request(from, "echo", index, { deadlineMs: 5_000 });
            sum += context.wait(pending) as number;
          }
          return sum;
        },
        serve({ count }) {
          let sum = 0;
          for (let index = 0; index < count; index++) {
            const received = context.receive(["add"], { deadlineMs: 5_000 });
            sum += received.message;
            received.reply(sum);
          }
          return sum;
        },
        add: (value) => value,
        hang({ on }) {
          context.wait(context.request(on, "noted", null, { deadlineMs: 60_000 }));
          context.receive(["add"], { deadlineMs: 60_000 });
        },
      },
    };
  },
});
