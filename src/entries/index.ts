/// <reference types="node" preserve="true" />
/// <reference lib="es2024" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />
/** Troupe: an actor-model training runtime for big models. Importing it defines and starts nothing. */

import "../errors/node-version.ts";

export type { SavedState } from "../actors/engine/conductor/index.ts";
export { formatSummary, type TensorSummary, type UpdateSummary } from "../actors/inspect/index.ts";
export type { HeldMemory, InspectedUpdate, RunResult } from "../actors/protocols/index.ts";
export {
  type AnomalyOptions,
  type CheckpointOptions,
  Runtime,
  type RuntimeOptions,
} from "../actors/trainer/index.ts";
export * from "../compute/nn/index.ts";
export * from "../compute/optim/index.ts";
export { type BlockOptions, block, type ZeroLevel, type ZeroName } from "../compute/parallel/index.ts";
export * from "../compute/tensor/index.ts";
// The initializers of the same names are `nn`'s own; a script means the tensors.
export { ones, zeros } from "../compute/tensor/index.ts";
export { type ErrorCode, errorTable, TroupeError } from "../errors/index.ts";
export * from "../job/events/index.ts";
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
} from "../job/index.ts";
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
} from "../job/rapidformer/index.ts";
export * from "../job/tasks/index.ts";
export * from "../library/checkpoint/index.ts";
export * from "../library/data/index.ts";
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
} from "../library/deltas/index.ts";
export * from "../library/metrics/index.ts";
export * from "../library/models/index.ts";
export * from "../tools/service/index.ts";
export {
  chromeTraceSink,
  type OpenTelemetryOptions,
  openTelemetrySink,
  type PrometheusOptions,
  type PrometheusSink,
  prometheusSink,
  tensorBoardSink,
} from "../tools/sinks/index.ts";
