import { releaseRefsOf } from "../../compute/tensor/index.ts";
import type { EventKind, EventOf, EventStream, TroupeEventBody } from "../../job/events/index.ts";
import type { ActorRef, ActorSystem, In, Kind } from "../../runtime/index.ts";
import { recipientName } from "../protocols/index.ts";
import type { SharedSystem } from "./shared-system.ts";
import { translateEvent } from "./translate-event.ts";

/**
 * Opens the part of a runtime's system for a user's actors, with the runtime's events; tensors on their way to one that has ended
 * are released. @param stallMs - time without progress after which one is reported, in ms
 */
export function openOwnActors(
  system: SharedSystem,
  stallMs: number,
  emit: (event: TroupeEventBody) => void,
): ActorSystem {
  const part: ActorSystem = system.part({
    name: "own",
    stallAfterMs: () => stallMs,
    onEvent(event) {
      if (event.kind === "actor.failed" || event.kind === "actor.stopped") {
        const { actor: name, incarnation } = event;
        releaseRefsOf(recipientName({ system: part.id, name, incarnation }));
      }
      const reported = translateEvent(event);
      if (reported !== undefined) emit(reported);
    },
  });
  return part;
}

/** How long events wait for an actor that is started again, in ms. */
const RESTART_MS = 60_000;

/** The kinds of messages of `P` that take such an event. */
export type KindFor<P, Event> = {
  [K in Kind<P>]: Event extends In<P, K> ? K : never;
}[Kind<P>];

/** Tells an actor and its next incarnations a stream's events, as messages of `kind`, until either is over. */
export async function tellEvents<P, E extends EventKind>(
  system: ActorSystem,
  stream: EventStream<E>,
  to: ActorRef<P>,
  kind: KindFor<P, EventOf<E>>,
): Promise<void> {
  let reader: ActorRef<P> | undefined = to;
  for await (const event of stream) {
    if (!system.isLiving(reader)) {
      reader = await system.find<P>(to.name, { deadlineMs: RESTART_MS }).catch(() => undefined);
      if (reader === undefined) return;
    }
    if (!reader.tell(kind, event as In<P, typeof kind>)) await reader.ready();
  }
}
