/** How often processes of different hosts give a sign of life. */
export const HEARTBEAT_MS = 200;

/** @returns after how many of its own beats in silence a process counts another as lost: with the next, so many seconds have passed */
export function heartbeatOf(silenceSeconds: number): {
  readonly everyMs: number;
  readonly lostAfter: number;
} {
  return {
    everyMs: HEARTBEAT_MS,
    lostAfter: Math.max(1, Math.round((silenceSeconds * 1000) / HEARTBEAT_MS) - 1),
  };
}
