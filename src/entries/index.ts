/**
 * Troupe, an actor-model training runtime for big models: jobs, their run, and what most of them are made of. Importing it defines
 * and starts nothing.
 */

import "../errors/node-version.ts";

export type {
  Accumulated,
  EvaluatedLoss,
  LoadedModel,
  SavedState,
  SteppedModel,
} from "../actors/engine/conductor/index.ts";
export { formatSummary, type TensorSummary, type UpdateSummary } from "../actors/inspect/index.ts";
export type { HeldMemory, InspectedUpdate, RunResult } from "../actors/protocols/index.ts";
export {
  type AnomalyOptions,
  type CheckpointOptions,
  type FrozenModel,
  type LiveModel,
  Runtime,
  type RuntimeOptions,
} from "../actors/trainer/index.ts";
export {
  crossEntropy,
  Dropout,
  Embedding,
  LayerNorm,
  Linear,
  Module,
  ModuleList,
  Parameter,
  Sequential,
} from "../compute/nn/index.ts";
export { AdamW, Cosine, LinearDecay, type OptimizerSpec, SGD } from "../compute/optim/index.ts";
export {
  arange,
  type Device,
  type DType,
  empty,
  full,
  noGrad,
  ones,
  ops,
  type Shape,
  scope,
  Tensor,
  tensor,
  zeros,
} from "../compute/tensor/index.ts";
export { type ErrorCode, TroupeError } from "../errors/index.ts";
export type { EventKind, EventOf, EventSink, TroupeEvent } from "../job/events/index.ts";
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
  type Program,
  type Programs,
  type Rank,
  type RankContext,
  type SampleContext,
  type TrainingPlan,
} from "../job/index.ts";
export { readModelConfig } from "../job/rapidformer/index.ts";
export {
  audioClassification,
  causalLm,
  type DescribedPicture,
  imageClassification,
  imageText,
  maskedLm,
  questionAnswering,
  type SpokenText,
  seq2seqLm,
  sequenceClassification,
  speechPretraining,
  speechRecognition,
  taskModel,
  tokenClassification,
} from "../job/tasks/index.ts";
export {
  type Batch,
  type Dataset,
  type DatasetFacts,
  loadTokenizer,
  type Picture,
  type Rows,
  readPng,
  readTable,
  type Scores,
  sampleDataset,
  stack,
  type TensorBatch,
  type TextBatch,
  type TextDataset,
  type Tokenizer,
  type TokenizerSpec,
  textDataset,
  tokenizerFromSpec,
} from "../library/data/index.ts";
export { lora } from "../library/deltas/index.ts";
export {
  autoModel,
  type GPT2Config,
  GPT2LMHeadModel,
  generate,
  type Task,
  type TaskModel,
} from "../library/models/index.ts";
export type { ActorInspection } from "../runtime/index.ts";
export { CheckpointService, ModelServer } from "../tools/service/index.ts";
