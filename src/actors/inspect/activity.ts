import { type ActorContext, systemClock } from "../../runtime/index.ts";
import type { Activity } from "../protocols/index.ts";

/** What an activity is of: a step, and of it a block or a micro-batch. */
export interface ActivitySubject {
  readonly step: number;
  readonly block?: number;
  readonly microBatch?: number;
}

/** Tells, by the lane that never makes anyone wait, of something that ends now. */
export function reportActivity(
  context: Pick<ActorContext<unknown>, "emit">,
  activity: Activity["activity"],
  { step, block = -1, microBatch }: ActivitySubject,
  beginMs: number,
): void {
  const finished: Activity = {
    kind: "activity.finished",
    activity,
    step,
    blockIndex: block,
    ...(microBatch === undefined ? {} : { microBatchIndex: microBatch }),
    beginMs,
    endMs: systemClock.now(),
  };
  context.emit(finished);
}

/** Whether an actor's emission is one of these. */
export function isActivity(event: unknown): event is Activity {
  return (event as Partial<Activity> | null)?.kind === "activity.finished";
}
