import { defineActor } from "../../../src/runtime/index.ts";

/** Streams numbers and counts how many were pulled out of it. */
export type SourceProtocol = {
  count: { in: { to: number }; item: number };
  breakAt: { in: { item: number }; item: number };
  silence: { in: null; item: number };
  produced: { in: null; out: number };
};

export default defineActor<SourceProtocol>({
  start(context) {
    let numProduced = 0;
    return {
      handlers: {
        *count({ to }) {
          try {
            for (let item = 0; item < to; item++) {
              numProduced += 1;
              yield item;
            }
          } finally {
            context.emit("source closed");
          }
        },
        async *breakAt({ item: last }) {
          for (let item = 0; item < last; item++) yield item;
          throw new Error(`broke at ${last}`);
        },
        async *silence() {
          await new Promise(() => {});
          yield 0;
        },
        produced: () => numProduced,
      },
    };
  },
});
