import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import type { EventKind } from "./event.ts";

/** Every kind of event. */
// biome-ignore format: a list
const KINDS: Readonly<Record<EventKind, true>> = {
  "activity.finished": true, "actor.failed": true, "actor.restarted": true, "actor.stalled": true,
  "actor.started": true, "actor.stopped": true, "anomaly.detected": true,
  "block.recorded": true, "block.unrecorded": true, "checkpoint.copied": true,
  "checkpoint.failed": true, "checkpoint.progressed": true, "checkpoint.rejected": true,
  "checkpoint.saved": true, "checkpoint.skipped": true, "checkpoint.started": true,
  "evaluation.finished": true, "events.dropped": true, "histogram.measured": true, "host.failed": true,
  "host.joined": true, "host.refused": true, "losses.unweighed": true, "memory.measured": true,
  "message.handled": true, "message.undelivered": true, "output.failed": true, "output.resumed": true,
  "parameters.unused": true, "rollouts.judged": true, "run.delayed": true, "run.failed": true, "run.finished": true,
  "run.interrupted": true, "run.restored": true, "run.resumed": true, "run.started": true,
  "step.finished": true, "subscriber.failed": true, "text.generated": true,
};

/** Refuses unknown kinds of events: a listener to one would never be called. @throws {TroupeError} `OPTION` */
export function checkKinds(where: string, kinds: readonly string[]): void {
  const unknown = kinds.find((kind) => !Object.hasOwn(KINDS, kind));
  if (unknown === undefined) return;
  const hint = `${whatWasMeant(unknown, Object.keys(KINDS))} docs/reference/events.md lists them all`;
  throw new TroupeError("OPTION", { where, expected: "a kind of event", got: unknown, hint });
}
