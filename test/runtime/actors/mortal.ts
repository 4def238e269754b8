import { defineActor } from "../../../src/runtime/index.ts";

/** Lives in a process of its own, and ends it. */
export type MortalProtocol = {
  pid: { in: null; out: number };
  /** Sends its process a signal, after announcing it. */
  die: { in: { signal: NodeJS.Signals; words: string } };
  prints: { in: string; out: null };
};

export default defineActor<MortalProtocol>({
  start(context) {
    return {
      handlers: {
        pid: () => process.pid,
        die({ signal, words }) {
          context.board.set("all_reduce", "layers.3", 1841);
          // Not by console: this thread's words would go by way of another, which is about to end.
          process.stderr.write(`${words}\n`, () => process.kill(process.pid, signal));
          context.flush();
        },
        async prints(text) {
          await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
          return null;
        },
      },
    };
  },
});
