import { isActivity } from "../actors/index.ts";
import type { ErrorReport, TroupeEventBody } from "../events/index.ts";
import type { Failure, RuntimeEvent } from "../runtime/index.ts";

/** @returns what happened to an actor or a message, in the words of the event stream; undefined where it is not for it */
export function retell(event: RuntimeEvent): TroupeEventBody | undefined {
  switch (event.kind) {
    case "actor.failed":
      return { ...event, cause: reportOf(event.cause) };
    case "actor.restarted":
      return { ...event, cause: event.cause && reportOf(event.cause) };
    case "actor.emitted":
      return isActivity(event.event)
        ? { ...event.event, kind: "activity.finished", actor: event.actor, incarnation: event.incarnation }
        : undefined;
    case "actor.started":
    case "actor.stopped":
    case "message.undelivered":
      return event;
    default:
      return undefined;
  }
}

function reportOf({ code, message, actor, cause }: Failure): ErrorReport {
  return {
    ...(code === undefined ? {} : { code }),
    message,
    ...(actor === undefined ? {} : { actor }),
    ...(cause === undefined ? {} : { cause: reportOf(cause) }),
  };
}
