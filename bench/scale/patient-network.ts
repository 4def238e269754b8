import type { Network } from "../../src/runtime/index.ts";

/** Heartbeats as often as usual, missed for a minute: their cost is measured on a machine that many processes share. */
export const PATIENT: Network = { host: "127.0.0.1", heartbeat: { everyMs: 200, lostAfter: 300 } };
