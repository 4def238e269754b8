/** A name that Rapidformer's and Megatron's scripts import, what has its place here, and what is to be known of it. */
export interface ScriptName {
  readonly theirs: string;
  /** As a script of `troupe` types it; an export, or a member behind one. */
  readonly here: string;
  readonly meaning: string;
}

/** The names that the original's scripts import and call, in its order. */
export const scriptNames: readonly ScriptName[] = [
  {
    theirs: "RapidformerEngine",
    here: "RapidformerEngine",
    meaning:
      "what a trainer or a loop is built on; `extra_args_provider` is its argument, settings with their defaults",
  },
  { theirs: "Finetuner", here: "Finetuner", meaning: "the template of fine-tuning; hooks in camel case" },
  { theirs: "PreTrainer, Pretrainer", here: "PreTrainer", meaning: "the template of pre-training" },
  {
    theirs: "get_args",
    here: "getArgs",
    meaning: "the run's settings, in functions of the script, not at its top level",
  },
  {
    theirs: "get_logger",
    here: "getLogger",
    meaning:
      "`info`, `warning` and `error` write a line from the first rank; `engine.print` is the first of them",
  },
  {
    theirs: "get_timers",
    here: "getTimers",
    meaning:
      "`timers(name).start()`, `stop()`, `elapsed()`, `timers.log(names)`; what the run does is timed by `--trace`",
  },
  { theirs: "get_tokenizer", here: "getTokenizer", meaning: "the tokenizer of the flags; to be awaited" },
  {
    theirs: "get_ltor_masks_and_position_ids",
    here: "leftToRightRows",
    meaning: "rows of text as one row; positions and the mask keep its documents apart",
  },
  {
    theirs: "build_train_valid_test_datasets",
    here: "buildTrainValidTestDatasets",
    meaning: "GPT's samples of indexed data",
  },
  {
    theirs: "build_train_valid_test_datasets_for_huggingface",
    here: "buildTrainValidTestDatasetsForHuggingface",
    meaning: "BERT's samples of indexed data; `ForT5` T5's",
  },
  {
    theirs: "engine.compose, finetuner.build_data_loader, engine.gather",
    here: "RapidformerEngine",
    meaning: "`compose`, `buildDataLoader` and `gather` of the engine, the latter two of a trainer too",
  },
  {
    theirs: "mpu.get_data_parallel_rank and its like",
    here: "mpu",
    meaning:
      "`getDataParallelRank`, `…WorldSize`, of `TensorModelParallel` and `PipelineModelParallel` too: places along `rank.axes`",
  },
  {
    theirs: "mpu.get_data_parallel_group and its like",
    here: "RapidformerEngine",
    meaning:
      "`engine.rank.axes.dp`, `tp`, `pp`: what ranks compute together stands on the axis (`allReduce`, `gather`, …)",
  },
  {
    theirs: "mpu.broadcast_data",
    here: "mpu",
    meaning:
      "`broadcastData(keys, batch, dtype)`: ranks that split a layer have the same batch already; nothing is sent",
  },
  {
    theirs: "load_metric",
    here: "accuracy",
    meaning: "a function of plain lists, as `f1Score` and the other [metrics](../guide/tasks.md)",
  },
];
