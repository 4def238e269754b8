import { defineActor } from "../../../src/runtime/index.ts";
import type { EchoProtocol } from "./echo.ts";

/** Reaches others by name, and itself by timers. */
export type FinderProtocol = {
  reach: { in: { name: string; value: number; deadlineMs: number }; out: unknown };
  /** The same, blocking its thread. */
  reachBlocking: { in: { name: string; value: number; deadlineMs: number }; out: unknown };
  tick: { in: { from: string } };
  start: { in: { kind: "after" | "every"; ms: number }; out: null };
  cancel: { in: null; out: null };
  ticks: { in: null; out: readonly string[] };
};

const deadlineMs = 20_000;

export default defineActor<FinderProtocol>({
  start(context) {
    const ticks: string[] = [];
    let timer: { cancel(): void } | undefined;
    return {
      handlers: {
        async reach({ name, value, ...options }) {
          const found = await context.find<EchoProtocol>(name, options);
          return await found.ask("echo", value, { deadlineMs });
        },
        reachBlocking({ name, value, ...options }) {
          const found = context.wait(context.seek<EchoProtocol>(name, options));
          return context.wait(context.request(found, "echo", value, { deadlineMs }));
        },
        tick: ({ from }) => void ticks.push(from),
        start({ kind, ms }) {
          timer = context[kind](ms, "tick", { from: kind });
          return null;
        },
        cancel() {
          timer?.cancel();
          return null;
        },
        ticks: () => ticks,
      },
    };
  },
});
