/**
 * The priority of a kind of message. `control` is never dropped and is handled first; `data` makes a sender without credit
 * wait; `telemetry` is bounded and drops its oldest.
 */
export type Lane = "control" | "data" | "telemetry";

/** Indices of the lanes, in the order they are served. */
export const laneIndex = { control: 0, data: 1, telemetry: 2 } as const;

/** One of 0 (control), 1 (data), 2 (telemetry). */
export type LaneIndex = 0 | 1 | 2;

/** Returns the lane of a kind. `lanes` holds the actor's kinds that are not `data`. */
export function laneOf(lanes: Readonly<Record<string, Lane>>, kind: string): LaneIndex {
  const lane = lanes[kind];
  return lane === undefined ? laneIndex.data : laneIndex[lane];
}
