/**
 * One schema of options: what they are called, take and mean, and how they are read. The only door of this room. It brings
 * zod: the main thread imports it when it reads options, an actor's thread never does, which needs its types alone.
 */
export type {
  AnomalyOptions,
  CarrierChoice,
  CheckpointOptions,
  DashboardOptions,
  Precision,
  RankPlacement,
  Rounding,
  RuntimeOptions,
} from "./options.generated.ts";
export type {
  CheckpointSettings,
  ExecutionSettings,
  LayoutSettings,
  OffloadSettings,
  PrecisionSettings,
  RuntimeSettings,
  SupervisionSettings,
  TelemetrySettings,
  TrainingSettings,
} from "./settings.ts";
export { settle } from "./settle.ts";
