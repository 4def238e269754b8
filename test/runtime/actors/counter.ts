import { type ActorRef, defineActor } from "../../../src/runtime/index.ts";

/** Counts up, for readers. */
export type CounterProtocol = {
  count: { in: { to: number; failAt?: number }; stream: number };
  /** The same, while other messages are handled. */
  countSlowly: { in: { to: number }; stream: number };
  /** How many numbers were made, and how many streams have been closed. */
  made: { in: null; out: { readonly numbers: number; readonly closed: number } };
  /** Reads a stream of another, and leaves it after some numbers. */
  read: { in: { of: ActorRef<CounterProtocol>; to: number; leaveAt: number }; out: readonly number[] };
  /** Reads one number of a stream of another, and falls. */
  fall: { in: { of: ActorRef<CounterProtocol> } };
  notAStream: { in: null; out: number };
};

export default defineActor<CounterProtocol>({
  concurrent: ["countSlowly"],
  start() {
    let numbers = 0;
    let closed = 0;
    return {
      handlers: {
        *count({ to, failAt }) {
          try {
            for (let value = 0; value < to; value++) {
              if (value === failAt) throw new Error(`no ${value}`);
              numbers += 1;
              yield value;
            }
          } finally {
            closed += 1;
          }
        },
        async *countSlowly({ to }) {
          for (let value = 0; value < to; value++) {
            await new Promise((resolve) => setTimeout(resolve, 1));
            yield value;
          }
        },
        made: () => ({ numbers, closed }),
        async read({ of, to, leaveAt }) {
          const read: number[] = [];
          for await (const value of of.stream("count", { to }, { deadlineMs: 20_000 })) {
            read.push(value);
            if (value === leaveAt) break;
          }
          return read;
        },
        async fall({ of }) {
          for await (const value of of.stream("count", { to: 100 }, { deadlineMs: 20_000 }))
            throw new Error(`had ${value}`);
        },
        notAStream: () => 7,
      },
    };
  },
});
