import type { TroupeEventBody } from "../events/index.ts";
import type { RuntimeEvent } from "../runtime/index.ts";

/** Tells what happened to actors and messages in the words of the event stream. */
export function retellRuntimeEvent(event: RuntimeEvent, emit: (event: TroupeEventBody) => void): void {
  switch (event.kind) {
    case "actor.emitted":
      return;
    default:
      emit(event as never);
  }
}
