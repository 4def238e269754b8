import { releaseRefsOf } from "../../compute/tensor/index.ts";
import type { TroupeEventBody } from "../../job/events/index.ts";
import type { ActorSystem } from "../../runtime/index.ts";
import { recipientName } from "../protocols/index.ts";
import type { SharedSystem } from "./shared-system.ts";
import { translateEvent } from "./translate-event.ts";

/**
 * Opens the part of a runtime's system that a user's actors live in. Their events are those of the runtime, and tensors on
 * their way to one that has ended are released.
 * @param stallMs - time without progress after which one is reported, in ms
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
