import type { EventOf } from "../../job/events/index.ts";

/** What an actor did to a block, on its way to the events. Plain data. */
export type Activity = Pick<
  EventOf<"activity.finished">,
  "kind" | "activity" | "step" | "blockIndex" | "microBatchIndex" | "beginMs" | "endMs"
>;

/** How far a save has come, on its way to the events. Plain data. */
export type SaveProgress = Pick<
  EventOf<"checkpoint.progressed">,
  "kind" | "step" | "writtenBytes" | "totalBytes"
>;
