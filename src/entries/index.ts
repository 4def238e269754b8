/// <reference types="node" preserve="true" />
/// <reference lib="es2024" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />
/** Troupe: an actor-model training runtime for big models. Importing it defines and starts nothing. */

import "./node-version.ts";

export * from "./checkpoint/index.ts";
export * from "./data/index.ts";
export {
  type AdapterOptions,
  adapter,
  applyDelta,
  type BitFitOptions,
  bitFit,
  type Delta,
  type DeltaJson,
  deltaFrom,
  deltaOf,
  type Ia3Options,
  ia3,
  type LoraOptions,
  loadDelta,
  lora,
  mergeDelta,
  type PrefixOptions,
  type PromptEncoderOptions,
  prefix,
  type SoftPromptOptions,
  saveDelta,
  softPrompt,
  type Target,
} from "./deltas/index.ts";
export type { SavedState } from "./engine/conductor/index.ts";
export { type ErrorCode, errorTable, TroupeError } from "./errors.ts";
export * from "./events/index.ts";
export { formatSummary, type TensorSummary, type UpdateSummary } from "./inspect/index.ts";
export {
  type Axis,
  type BackwardOptions,
  type BestRule,
  type ConfigValue,
  defineJob,
  defineLoop,
  type ForwardResult,
  type Job,
  type JobConfig,
  type JobDefinition,
  type Loop,
  type LoopDefinition,
  type Losses,
  type LossWeights,
  type Rank,
  type RankContext,
  type SampleContext,
  type TrainingPlan,
} from "./job/index.ts";
export * from "./metrics/index.ts";
export * from "./models/index.ts";
export * from "./nn/index.ts";
export * from "./optim/index.ts";
export { type BlockOptions, block, type ZeroLevel, type ZeroName } from "./parallel/index.ts";
export type { HeldMemory, InspectedUpdate, RunResult } from "./protocols/index.ts";
export {
  type Arguments,
  type BertRecord,
  buildTrainValidTestDatasets,
  buildTrainValidTestDatasetsForHuggingface,
  buildTrainValidTestDatasetsForT5,
  type Composed,
  type ComposedModel,
  type Composition,
  type DataLoader,
  Finetuner,
  type ForwardStep,
  type GptRecord,
  getArgs,
  getLogger,
  getTimers,
  getTokenizer,
  type LeftToRightRow,
  type Logger,
  leftToRightRows,
  type ModelProvided,
  mpu,
  PreTrainer,
  Pretrainer,
  type PretrainingData,
  paddedVocabulary,
  RapidformerEngine,
  readModelConfig,
  type T5Record,
  type Timer,
  type Timers,
} from "./rapidformer/index.ts";
export * from "./service/index.ts";
export {
  chromeTraceSink,
  type OpenTelemetryOptions,
  openTelemetrySink,
  type PrometheusOptions,
  type PrometheusSink,
  prometheusSink,
  tensorBoardSink,
} from "./sinks/index.ts";
export * from "./tasks/index.ts";
export * from "./tensor/index.ts";
// The initializers of the same names are `nn`'s own; a script means the tensors.
export { ones, zeros } from "./tensor/index.ts";
export {
  type AnomalyOptions,
  type CheckpointOptions,
  Runtime,
  type RuntimeOptions,
} from "./trainer/index.ts";
