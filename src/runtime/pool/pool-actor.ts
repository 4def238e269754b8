import { defineActor, type Handlers } from "../actor/define-actor.ts";
import type { Clock } from "../clock.ts";
import type { Delivery } from "../messaging/resident.ts";
import { RecordType } from "../protocol/record.ts";
import { type AnyProtocol, Members } from "./members.ts";
import type { Route } from "./route.ts";

/** Arguments of the actor that stands for a pool. Plain data. */
export interface PoolInit {
  /** Names of its actors. */
  readonly members: readonly string[];
  /** Kinds of messages that they understand. */
  readonly kinds: readonly string[];
  readonly route: Route;
}

/** Passes each message of a pool on to one of its actors, and the answer back. */
export default defineActor<AnyProtocol, PoolInit>({
  concurrent: "questions",
  start(context, { members: names, kinds, route }) {
    const members = new Members(context, names, route);
    const pass = (kind: string, message: unknown, { type, deadlineMs }: Delivery, clock: Clock) =>
      type === RecordType.ask
        ? members.ask(kind, message, () => deadlineMs - clock.now())
        : members.tell(kind, message);
    const handlers = kinds.map((kind) => [
      kind,
      (message: unknown, delivery: Delivery, clock: Clock) => pass(kind, message, delivery, clock),
    ]);
    return { handlers: Object.fromEntries(handlers) as Handlers<AnyProtocol> };
  },
});
