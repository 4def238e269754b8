/**
 * How a kind travels. `control` is never dropped and handled first, `data` makes a sender out of credit
 * wait, `telemetry` is bounded and drops its oldest.
 */
export type Lane = "control" | "data" | "telemetry";

/** Indices of the lanes, in the order they are served. */
export const laneIndex = { control: 0, data: 1, telemetry: 2 } as const;

/** One of 0 (control), 1 (data), 2 (telemetry). */
export type LaneIndex = 0 | 1 | 2;

/** The lane of a kind, given those of an actor's kinds that are not `data`. */
export function laneOf(lanes: Readonly<Record<string, Lane>>, kind: string): LaneIndex {
  const lane = lanes[kind];
  return lane === undefined ? laneIndex.data : laneIndex[lane];
}
