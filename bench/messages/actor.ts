import { type ActorRef, defineActor } from "../../src/runtime/index.ts";

/** The same message as the plain threads send. */
export interface Note {
  readonly step: number;
  readonly block: string;
  readonly value: number;
}

/** An actor that echoes, counts, asks and waits, sends, or fails, as the benchmark orders. */
export type BenchProtocol = {
  echo: { in: unknown; out: unknown };
  note: { in: Note };
  /** Answers once so many notes have come since the last time. */
  counted: { in: number; out: number };
  /** Sends notes; each in a packet of its own unless batched. */
  send: { in: { to: ActorRef<BenchProtocol>; count: number; batched: boolean }; out: null };
  /** Microseconds of a round trip by blocking calls. */
  wait: { in: { on: ActorRef<BenchProtocol>; count: number }; out: number };
  /** Enters the time and fails. */
  fail: { in: Float64Array };
};

export default defineActor<BenchProtocol>({
  concurrent: ["counted"],
  start(context) {
    let numReceived = 0;
    let expected: { readonly count: number; readonly resolve: (count: number) => void } | undefined;
    const report = (): void => {
      if (expected === undefined || numReceived < expected.count) return;
      expected.resolve(numReceived);
      numReceived = 0;
      expected = undefined;
    };
    return {
      handlers: {
        echo: (message) => message,
        note() {
          numReceived += 1;
          if (numReceived === expected?.count) report();
        },
        counted: (count) =>
          new Promise((resolve) => {
            expected = { count, resolve };
            report();
          }),
        async send({ to, count, batched }) {
          for (let value = 0; value < count; value++) {
            const hasCredit = to.tell("note", { step: 7, block: "layers.3", value });
            if (!batched) context.flush();
            if (!hasCredit) await to.ready();
          }
          return null;
        },
        wait({ on, count }) {
          const startMs = performance.now();
          for (let value = 0; value < count; value++) {
            const message = { step: 7, block: "layers.3", value };
            context.wait(context.request(on, "echo", message, { deadlineMs: 10_000 }));
          }
          return ((performance.now() - startMs) * 1_000) / count;
        },
        fail(timeMs) {
          timeMs[0] = performance.timeOrigin + performance.now();
          throw new Error("as asked");
        },
      },
    };
  },
});
