import { type ActorRef, type Addressed, defineActor } from "../../../src/runtime/index.ts";
import { endThread } from "../../fixtures/end-thread.ts";
import type { EchoProtocol } from "./echo.ts";
import { mapWords, waitAtGate } from "./shared-words.ts";

/** Takes numbered items and remembers them, in memory shared with the test, so that its own end loses nothing. */
export type SinkProtocol = {
  item: { in: readonly [sender: string, value: number] };
  sample: { in: number };
  urgent: { in: string };
  taken: { in: null; out: Taken };
  /** Emits when that actor is down. */
  watch: { in: Addressed };
  /** The same, with a link to it over which nothing ever goes. */
  watchLinked: { in: ActorRef<EchoProtocol> };
  /** Watches, and removes the watch once it knows of the death, before the watch fires. */
  watchUntilDown: { in: ActorRef<EchoProtocol>; out: string };
  /** Emits when the first of its siblings is down. */
  watchSiblings: { in: null };
  /** Blocks the thread until the gate opens. */
  block: { in: string };
};

export type Taken = readonly (readonly [lane: string, sender: string, value: number])[];

export interface SinkInit {
  /** Shared words: times each value was received, by value. */
  readonly countsPath?: string;
  /** Leaves without a word on receiving this value. */
  readonly dieAt?: number;
}

export default defineActor<SinkProtocol, SinkInit>({
  lanes: { sample: "telemetry", urgent: "control" },
  start(context, { countsPath, dieAt }) {
    const counts = countsPath === undefined ? undefined : mapWords(countsPath);
    const taken: [string, string, number][] = [];
    return {
      handlers: {
        item([sender, value]) {
          if (counts !== undefined) Atomics.add(counts, value, 1);
          else taken.push(["data", sender, value]);
          if (value === dieAt) endThread(7);
        },
        sample(value) {
          taken.push(["telemetry", "", value]);
          if (value === 999) context.emit("last sample");
        },
        urgent(text) {
          taken.push(["control", text, 0]);
          context.emit({ urgent: text });
        },
        taken: () => [...taken],
        watch(ref) {
          context.watch(ref, (down) => context.emit({ down: down.actor, reason: down.reason }));
          context.emit({ watching: ref.address.name });
        },
        async watchLinked(ref) {
          await context.connect(ref);
          context.watch(ref, (down) => context.emit({ down: down.actor, reason: down.reason }));
          context.emit({ watching: ref.address.name });
        },
        async watchUntilDown(ref) {
          context.watch(ref, (down) => context.emit({ down: down.actor, reason: down.reason }));
          // The question fails with the same news that the watch waits for; the watch fires between messages.
          await ref.ask("hold", null, { deadlineMs: 60_000 }).catch(() => {});
          context.unwatch(ref);
          return `${ref.name} is down, and I no longer care`;
        },
        watchSiblings() {
          const by = `${context.name}#${context.incarnation}`;
          context.watchSiblings(({ actor, reason }) => context.emit({ sibling: actor, reason, by }));
          context.emit({ watchingSiblings: by });
        },
        block(gate) {
          context.emit("blocked");
          context.flush();
          waitAtGate(gate);
        },
      },
    };
  },
});
