/** Rapidformer's API: its flags, its templates, and the jobs of its tasks. */
export { type Arguments, defaultArguments, getArgs } from "./arguments.ts";
export {
  type Composed,
  type ComposedModel,
  type Composition,
  type DataLoader,
  type LrSchedulerFn,
  type OptimizerFn,
  RapidformerEngine,
} from "./engine.ts";
export type { Fate, Flag, SettingValue, Takes } from "./flag.ts";
export { flagGroups, flags } from "./flags.ts";
export { jobModules } from "./job-modules.ts";
export { type LeftToRightRow, leftToRightRows } from "./left-to-right-rows.ts";
export { getLogger, type Logger } from "./logger.ts";
export { paddedVocabulary } from "./model-fields.ts";
export { mpu } from "./mpu.ts";
export {
  type BertRecord,
  buildTrainValidTestDatasets,
  buildTrainValidTestDatasetsForHuggingface,
  buildTrainValidTestDatasetsForT5,
  type GptRecord,
  getTokenizer,
  type PretrainingData,
  type T5Record,
} from "./pretraining-data.ts";
export { readModelConfig } from "./run-parts.ts";
export { getTimers, type Timer, type Timers } from "./timers.ts";
export { Finetuner, type ForwardStep, type ModelProvided, PreTrainer } from "./trainer.ts";
