import { TroupeError } from "../../errors/index.ts";
import { defineActor, type Handlers } from "../actor/define-actor.ts";
import type { Endpoint } from "../messaging/endpoint.ts";
import type { Delivery } from "../messaging/resident.ts";
import type { DeadLetterReason } from "../protocol/dead-letter.ts";
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
    const handlers = kinds.map((kind) => [
      kind,
      (message: unknown, delivery: Delivery, endpoint: Endpoint) =>
        delivery.type === RecordType.ask
          ? members.ask(kind, message, () => delivery.deadlineMs - endpoint.clock.now())
          : tell(members, delivery, endpoint),
    ]);
    return { handlers: Object.fromEntries(handlers) as Handlers<AnyProtocol> };
  },
});

/** Passes a statement on. One that cannot be is a dead letter: it must not take the open questions of others with it. */
function tell(members: Members, delivery: Delivery, endpoint: Endpoint): Promise<void> | undefined {
  const refuse = (error: unknown): void => endpoint.undelivered.refused(delivery, reasonFor(error));
  try {
    return members.tell(delivery.kind, delivery.body)?.catch(refuse);
  } catch (error) {
    refuse(error);
    return undefined;
  }
}

const reasonFor = (error: unknown): DeadLetterReason =>
  error instanceof TroupeError && error.code === "OUTBOX_FULL" ? "Overflow" : "WrongProtocol";
