import { type ActorContext, systemClock } from "../../runtime/index.ts";
import type { Activity } from "../protocols/index.ts";

/** Reports an activity that ends now, on the lane that never makes anyone wait. */
export function reportActivity(
  context: Pick<ActorContext<unknown>, "emit">,
  activity: Activity["activity"],
  { step, block = -1, microBatch }: { step: number; block?: number; microBatch?: number },
  beginMs: number,
): void {
  const of = { step, blockIndex: block, ...(microBatch !== undefined && { microBatchIndex: microBatch }) };
  const endMs = systemClock.now();
  context.emit({ kind: "activity.finished", activity, ...of, beginMs, endMs } satisfies Activity);
}

/** Whether an actor's emission is an activity. */
export function isActivity(event: unknown): event is Activity {
  return (event as Partial<Activity> | null)?.kind === "activity.finished";
}
