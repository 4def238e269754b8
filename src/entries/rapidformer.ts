/** `troupe/rapidformer`: Rapidformer's trainers, engine, arguments and datasets, under its names. */

import "../errors/node-version.ts";

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
  type LrSchedulerFn,
  leftToRightRows,
  type ModelProvided,
  mpu,
  type OptimizerFn,
  PreTrainer,
  type PretrainingData,
  paddedVocabulary,
  RapidformerEngine,
  readModelConfig,
  type SettingValue,
  type T5Record,
  type Timer,
  type Timers,
} from "../job/rapidformer/index.ts";
export { type T5Vocabulary, t5Vocabulary } from "../library/data/index.ts";
