import {
  composeReport,
  type ErrorReport,
  type EventKind,
  type TroupeEventBody,
} from "../../job/events/index.ts";
import type { Failure, RuntimeEvent } from "../../runtime/index.ts";
import { isActivity } from "../inspect/index.ts";
import { isSaveProgress } from "../state/saving/index.ts";

type RuntimeEventOf<Kind extends RuntimeEvent["kind"]> = Extract<RuntimeEvent, { kind: Kind }>;
type EventBody<Kind extends EventKind> = Extract<TroupeEventBody, { kind: Kind }>;

/** Translates an event of the runtime into one of the event stream; undefined for events that do not belong there. */
export function translateEvent(event: RuntimeEvent): TroupeEventBody | undefined {
  switch (event.kind) {
    case "actor.failed":
      return { ...event, cause: reportOf(event.cause) };
    case "actor.restarted":
      return { ...event, cause: event.cause && reportOf(event.cause) };
    case "actor.emitted": {
      const { event: emitted, ...actor } = event;
      if (isSaveProgress(emitted)) return emitted;
      return isActivity(emitted) ? { ...emitted, ...actor, kind: "activity.finished" } : undefined;
    }
    case "actor.stalled":
      return stalledEvent(event);
    case "message.undelivered":
      // The telemetry lane drops messages rather than wait.
      return event.reason === "Overflow" && event.messageKind === "telemetry"
        ? { kind: "events.dropped", actor: event.from, numDropped: event.count }
        : event;
    case "actor.started":
    case "actor.stopped":
      return event;
    case "span.finished":
      return { ...event, kind: "message.handled" };
    default:
      return event satisfies never;
  }
}

/** @param stack - the stack of the user's code that the actor waits for, if it is known */
export function stalledEvent(
  event: RuntimeEventOf<"actor.stalled">,
  stack?: string,
): EventBody<"actor.stalled"> {
  const { kind, actor, role, index, incarnation, pid, state, ageMs, handling, waitingFor, op, collective } =
    event;
  const { frames } = composeReport({ message: "", stack });
  const call = event.call && { ...event.call, ...(frames && { frames }) };
  const reported = op && { name: op.name, block: op.block, sequence: op.sequence };
  return {
    kind,
    actor,
    role,
    index,
    incarnation,
    pid,
    state,
    ageMs,
    handling,
    waitingFor,
    op: reported,
    call,
    collective,
  };
}

function reportOf({ cause, ...failure }: Failure): ErrorReport {
  return composeReport({ ...failure, cause: cause && reportOf(cause) });
}
