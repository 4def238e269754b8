import type { EventOf, TroupeEvent, TroupeEventBody } from "../../src/job/events/index.ts";
import { samples } from "../events/samples.ts";

/** An event as the hub would stamp it, at the time that is given. */
export function stamped(body: TroupeEventBody, timeMs = 1_000_000): TroupeEvent {
  return { ...body, timeMs, schemaVersion: 2 };
}

/** The beginning of a run. */
export function begun(changed: Partial<EventOf<"run.started">> = {}): TroupeEvent {
  return stamped({ ...samples["run.started"], firstStep: 0, steps: 4000, ...changed });
}

/** A step with a loss of its own. */
export function stepped(step: number, changed: Partial<EventOf<"step.finished">> = {}): TroupeEvent {
  return stamped(
    { ...samples["step.finished"], step, lossNats: 4 / step, ...changed },
    1_000_000 + 100 * step,
  );
}
