import { type ActorRef, defineActor } from "../../../src/runtime/index.ts";

/** Answers, counts and fails on demand: the plainest actor of these tests. */
export type EchoProtocol = {
  echo: { in: unknown; out: unknown };
  relay: { in: { to: ActorRef<EchoProtocol>; message: unknown }; out: unknown };
  note: { in: number };
  noted: { in: null; out: readonly number[] };
  fail: { in: string };
  refuse: { in: string; out: never };
  exit: { in: number };
};

export default defineActor<EchoProtocol>({
  start() {
    const notes: number[] = [];
    return {
      handlers: {
        echo: (message) => message,
        relay: ({ to, message }) => to.ask("echo", message, { deadlineMs: 10_000 }),
        note(value) {
          notes.push(value);
        },
        noted: () => notes,
        fail(reason) {
          throw new Error(reason);
        },
        refuse(reason) {
          throw new Error(reason);
        },
        exit(code) {
          process.exit(code);
        },
      },
    };
  },
});
