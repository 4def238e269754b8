export type { ScheduleName, ZeroName } from "../parallel/index.ts";
export type { AnomalyOptions } from "./anomalies.ts";
export type { CheckpointOptions } from "./checkpointing.ts";
export { configure } from "./configure.ts";
export type { RankPlacement, RuntimeOptions } from "./options.ts";
export type { Precision, Rounding } from "./precision.ts";
export { Runtime } from "./runtime.ts";
