import { type ActorRef, defineActor } from "../../../src/runtime/index.ts";
import type { EchoProtocol } from "./echo.ts";

/** Computes synchronously, as a rank does: takes answers and messages by blocking calls. */
export type BlockerProtocol = {
  /** Asks for 0, 1, ... one after the other, and adds the answers up. */
  sum: { in: { from: ActorRef<EchoProtocol>; count: number }; out: number };
  /** Asks for all before it waits for the first. */
  sumAhead: { in: { from: ActorRef<EchoProtocol>; count: number }; out: number };
  /** Takes `count` additions, answering each with the sum so far. */
  serve: { in: { count: number }; out: number };
  add: { in: number; out: number };
  /** Blocks until it is stopped, or until an answer comes that never will. */
  hang: { in: { on: ActorRef<EchoProtocol>; forAnswer?: boolean } };
  /** Polls until interrupted; answers with what it was interrupted by. */
  pollUntilAborted: { in: null; out: string };
  /** Polls for a while from outside any handler. */
  pollLater: { in: null; out: null };
  abort: { in: string };
  /** Receives with a deadline that passes. */
  receiveNothing: { in: null; out: never };
  askInVain: { in: { on: ActorRef<EchoProtocol> }; out: never };
  /** Tells `count` notes while blocking, which makes it wait for credit itself. */
  tellMany: { in: { to: ActorRef<EchoProtocol>; count: number }; out: null };
  /** Tells notes lazily while blocking, and answers with what is noted once it waits; the last one it leaves to the end of its turn. */
  tellLazily: { in: { to: ActorRef<EchoProtocol>; count: number }; out: readonly number[] };
};

export default defineActor<BlockerProtocol>({
  lanes: { abort: "control" },
  start(context) {
    let partner: ActorRef<EchoProtocol> | undefined;
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
        sumAhead({ from, count }) {
          const pending = Array.from({ length: count }, (_, index) =>
            context.request(from, "echo", index, { deadlineMs: 5_000 }),
          );
          return pending.reduce((sum, answer) => sum + (context.wait(answer) as number), 0);
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
        hang({ on, forAnswer = false }) {
          partner = on;
          context.emit("hangs");
          if (forAnswer) context.wait(context.request(on, "hold", null, { deadlineMs: 60_000 }));
          context.receive(["add"], { deadlineMs: 60_000 });
        },
        pollUntilAborted() {
          context.emit("polling");
          try {
            for (;;) context.poll();
          } catch (error) {
            return (error as Error).message;
          }
        },
        pollLater() {
          setImmediate(() => {
            context.emit("polling later");
            const untilMs = performance.now() + 100;
            while (performance.now() < untilMs) context.poll();
            context.emit("polled later");
          });
          return null;
        },
        abort(reason) {
          throw new Error(`aborted: ${reason}`);
        },
        receiveNothing: () => context.receive(["add"], { deadlineMs: 5 }) as never,
        askInVain: ({ on }) => context.wait(context.request(on, "hold", null, { deadlineMs: 5 })) as never,
        tellLazily({ to, count }) {
          context.poll();
          for (let value = 0; value < count; value++) to.tell("note", value, { lazy: true });
          const noted = context.request(to, "noted", null, { deadlineMs: 5_000, lazy: true });
          const answer = context.wait(noted);
          to.tell("note", count, { lazy: true });
          return answer;
        },
        tellMany({ to, count }) {
          context.poll();
          for (let value = 0; value < count; value++) to.tell("note", value);
          return null;
        },
      },
      stop() {
        if (partner === undefined) return;
        const answer = context.wait(context.request(partner, "echo", "tidy", { deadlineMs: 5_000 }));
        context.emit(`cleaned up with ${answer}`);
      },
    };
  },
});
