import { type ActorRef, type Addressed, defineActor } from "../../../src/runtime/index.ts";
import { mapWords, waitAtGate } from "./shared-words.ts";
import type { SinkProtocol, Taken } from "./sink.ts";

/** Sends numbered messages to a sink. */
export type SenderProtocol = {
  /** Sends items `from` to `from + count - 1`, waiting for credit; says how often it had to. */
  burst: {
    in: { to: ActorRef<SinkProtocol>; from: number; count: number };
    out: { numWaits: number; numBeforeWait: number };
  };
  /** Sends samples without ever waiting. */
  flood: { in: { to: ActorRef<SinkProtocol>; count: number }; out: null };
  /** Sends one item straight, and one by way of another sender. */
  fork: { in: { to: ActorRef<SinkProtocol>; via: ActorRef<SenderProtocol> } };
  /** Answers once the sink has handled every item sent to it from here, with all it has taken. */
  settle: { in: { to: ActorRef<SinkProtocol> }; out: Taken };
  /** Answers once what it sends goes straight to that actor. */
  connect: { in: Addressed; out: null };
  /** Sends one item under this name, and stops, or fails with what is said; once a gate is open, where there is one. */
  farewell: {
    in: { to: ActorRef<SinkProtocol>; as: string; value: number; failure?: string; behind?: Gate };
  };
  /** Emits, then fails. */
  lastWords: { in: string };
};

/** Where an actor waits before its last words: shared memory. */
export interface Gate {
  readonly gate: string;
  /** A word that is set when nothing is left to the actor but to leave. */
  readonly leavingPath: string;
}

export default defineActor<SenderProtocol>({
  start(context) {
    let leavingPath: string | undefined;
    return {
      handlers: {
        async burst({ to, from, count }) {
          let numWaits = 0;
          let numBeforeWait = count;
          for (let value = from; value < from + count; value++) {
            if (to.tell("item", [context.name, value])) continue;
            if (numWaits === 0) context.emit("waits for credit");
            numWaits += 1;
            numBeforeWait = Math.min(numBeforeWait, value - from);
            await to.ready();
          }
          return { numWaits, numBeforeWait };
        },
        flood({ to, count }) {
          for (let value = 0; value < count; value++) to.tell("sample", value);
          return null;
        },
        async fork({ to, via }) {
          await via.ask("burst", { to, from: 1, count: 1 }, { deadlineMs: 10_000 });
          to.tell("item", [context.name, 2]);
        },
        settle: ({ to }) => to.ask("taken", null, { deadlineMs: 20_000 }),
        async connect(to) {
          await context.connect(to);
          return null;
        },
        farewell({ to, as, value, failure, behind }) {
          if (behind !== undefined) {
            leavingPath = behind.leavingPath;
            context.emit("at the gate");
            context.flush();
            waitAtGate(behind.gate);
          }
          to.tell("item", [as, value]);
          if (failure !== undefined) throw new Error(failure);
          context.stop();
        },
        lastWords(text) {
          context.emit(text);
          throw new Error(text);
        },
      },
      stop() {
        if (leavingPath !== undefined) Atomics.store(mapWords(leavingPath), 0, 1);
      },
    };
  },
});
