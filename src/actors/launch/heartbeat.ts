/** How often processes of different hosts send a heartbeat. */
export const HEARTBEAT_MS = 200;

/** Returns the heartbeat's period, and how many periods of silence mean that a peer is lost: one more makes `silenceMs`. */
export function heartbeatOf({ silenceMs }: { readonly silenceMs: number }): {
  readonly everyMs: number;
  readonly lostAfter: number;
} {
  return { everyMs: HEARTBEAT_MS, lostAfter: Math.max(1, Math.round(silenceMs / HEARTBEAT_MS) - 1) };
}
