import type { EventOf } from "../../job/events/index.ts";

/** An actor's work on a block, for the event log. Plain data. */
export type Activity = Pick<
  EventOf<"activity.finished">,
  "kind" | "activity" | "step" | "blockIndex" | "microBatchIndex" | "beginMs" | "endMs"
>;

/** Progress of a save, for the event log. Plain data. */
export type SaveProgress = Pick<
  EventOf<"checkpoint.progressed">,
  "kind" | "step" | "writtenBytes" | "totalBytes"
>;
