/**
 * One schema of options: what they are called, take and mean, and how they are read from a script, a command line, a file and
 * the environment. The only door of this room. It brings zod: the main thread imports it when it reads options, an actor's
 * thread never does, which needs its types alone.
 */
export { type CommandOptions, readCommand } from "./command.ts";
export { environmentOptions, FILE_VARIABLE } from "./environment.ts";
export { fileOptions } from "./file.ts";
export { number, oneOf, options, text, toggle, whole } from "./kinds.ts";
export { type Given, Layers, type Origin } from "./layers.ts";
export { describeStandard, groups, type Option, option, optionsOf } from "./option.ts";
export type {
  AnomalyOptions,
  CarrierChoice,
  CheckpointOptions,
  DashboardOptions,
  HostsOptions,
  Precision,
  RankPlacement,
  Rounding,
  RuntimeOptions,
} from "./options.generated.ts";
export { printConfig, printScript } from "./print.ts";
export { read } from "./read.ts";
export { commandSchema, ranksUpTo, runtimeSchema } from "./schema.ts";
export type {
  CheckpointSettings,
  ExecutionSettings,
  LayoutSettings,
  OffloadHome,
  OffloadSettings,
  PrecisionSettings,
  RuntimeSettings,
  SupervisionSettings,
  TelemetrySettings,
  TrainingSettings,
} from "./settings.ts";
export { settle } from "./settle.ts";
export { bytesOf, readText } from "./texts.ts";
export { checkTraining } from "./training-plan.ts";
