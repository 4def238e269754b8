import { type ActorContext, systemClock } from "../../runtime/index.ts";
import type { Activity } from "../protocols/index.ts";

/** The step of an activity, and its block or micro-batch. */
export interface ActivitySubject {
  readonly step: number;
  readonly block?: number;
  readonly microBatch?: number;
}

/** Reports an activity that ends now, on the lane that never makes anyone wait. */
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

/** Whether an actor's emission is an activity. */
export function isActivity(event: unknown): event is Activity {
  return (event as Partial<Activity> | null)?.kind === "activity.finished";
}
