// The job of `troupe finetune` without a script: a task on data and a model, all found by name.

import { Tensor } from "../../../compute/tensor/index.ts";
import * as data from "../../../library/data/index.ts";
import { families, familyOf, hasModel, type TaskModel } from "../../../library/models/index.ts";
import { defineJob } from "../../index.ts";
import { type AnyTask, type DynamicShapes, type TaskFacts, taskModel, taskNamed } from "../../tasks/index.ts";
import { type Arguments, defaultArguments, getArgs, setArgs } from "../arguments.ts";
import { ofExperts } from "../experts.ts";
import { withArchitecture } from "../model-fields.ts";
import {
  argumentError,
  batchSizeOf,
  epochSteps,
  optimizerOf,
  planOf,
  readModelConfig,
  refuseUnread,
  samplingRateOf,
  scheduleOf,
  stepWindow,
} from "../run-parts.ts";

const args = (config: Readonly<Record<string, string | number | boolean>>) => config as Arguments;

function taskOf({ task }: Arguments): AnyTask {
  if (task !== "") return taskNamed(task);
  throw argumentError("--task", "none", "such as --task sequence_classification, or --user-script FILE");
}

function configOf(given: Arguments) {
  const { pretrainedModelNameOrPath: folder } = given;
  if (folder === "") throw argumentError("--pretrained-model-name-or-path", "none", "a folder, or a name");
  return withArchitecture(readModelConfig(folder), given);
}

/** Tasks without texts: their samples are pictures or recordings. */
const withoutTexts: ReadonlySet<string> = new Set([
  "image_classification",
  "audio_classification",
  "speech_pretraining",
  "speech_recognition",
]);

/** Number of samples in a batch, over which its mean is taken. */
function numRows(batch: data.Batch): number {
  // A packed row has one segment per sample.
  if (batch.segments instanceof Tensor) return (batch.segments.shape[0] ?? 1) - 1;
  const [first] = data.tensorsIn(batch);
  return first?.shape[0] ?? 1;
}

/** Tasks whose rows are texts of different lengths. */
const withLengths: ReadonlySet<string> = new Set([
  "causal_lm",
  "chat",
  "sequence_classification",
  "token_classification",
  "question_answering",
  "masked_lm",
  "seq2seq_lm",
]);

/** Tasks whose samples can be packed, if the model's family supports it. */
const packable: readonly string[] = [
  "sequence_classification",
  "token_classification",
  "question_answering",
  "masked_lm",
  "causal_lm",
  "chat",
];

/** Samples are sorted within the step only, so each step keeps its samples. */
function shapesOf(given: Arguments): DynamicShapes {
  const multiple = Math.max(1, given.padToMultipleOf);
  const config = configOf(given);
  const task = packable.includes(given.task) ? taskNamed(given.task).task : undefined;
  if (given.packing && !(task && hasModel(task, config) && familyOf(config)?.packs)) {
    const packing = families().filter(({ heads, packs }) => packs && task && heads[task]);
    throw argumentError(
      task === undefined
        ? `--packing with ${packable.join(", ")}`
        : `--packing of ${task} with ${packing.map(({ modelType }) => modelType).join(", ")}`,
      `${given.task} of ${config.model_type}`,
      "--dynamic-shapes pads to the longest of a batch",
    );
  }
  if (given.packing) return { window: batchSizeOf(given), multiple, isPacked: true };
  if (!withLengths.has(given.task))
    throw argumentError(
      `--dynamic-shapes with ${[...withLengths].join(", ")}`,
      given.task,
      "its rows are of one length",
    );
  return { ...stepWindow(given), multiple };
}

/** Settings read by pre-training and templates only. */
const unread = [
  ...["tokenizerType", "vocabFile", "mergeFile", "vocabExtraIds", "makeVocabSizeDivisibleBy"],
  ...["dataImpl", "split", "maskProb", "shortSeqProb", "bertBinaryHead", "decoderSeqLength"],
  ...["eodMaskLoss", "resetPositionIds", "resetAttentionMask", "evalInterval", "evalIters"],
  ...ofExperts,
];

/** @throws {TroupeError} `ARGUMENTS` for a flag that the task would not read */
function refuseOthers(given: Arguments): void {
  refuseUnread(given, unread, "with a task's name alone", "pre-training and templates read it");
  if (!given.dynamicShapes && !given.packing)
    refuseUnread(given, ["padToMultipleOf"], "without --dynamic-shapes or --packing");
  if (given.dataDir !== "" && given.dataPath !== "")
    throw argumentError("one of --data-path and --data-dir", "both");
}

// Each task has its own type of batch; here any may occur.
type AnyDataset = data.Dataset<data.Batch, TaskFacts>;

export default defineJob({
  config: defaultArguments,
  data: async (config, { seed }): Promise<AnyDataset> => {
    const given = args(config);
    const task = taskOf(given);
    refuseOthers(given);
    const place = given.dataDir || given.dataPath;
    if (place === "") throw argumentError("--data-path or --data-dir", "neither", "a folder, or a name");
    const hasTexts = !withoutTexts.has(given.task);
    const { pretrainedModelNameOrPath: folder, seqLength } = given;
    return task.dataset(await task.read(place), {
      source: [given.datasetPath, given.datasetName].filter((word) => word !== "").join("/") || place,
      config: configOf(given),
      samplingRate: samplingRateOf(folder),
      ...(hasTexts && { tokenizer: await data.loadTokenizer(folder) }),
      ...(given.task === "chat" && { chatTemplate: await data.ChatTemplate.load(folder) }),
      ...(seqLength > 0 && { length: seqLength }),
      ...((given.dynamicShapes || given.packing) && { dynamicShapes: shapesOf(given) }),
      seed,
    });
  },
  training: (config, { numTrain }) => ({
    ...planOf(args(config), numTrain),
    evaluateEverySteps: epochSteps(args(config), numTrain),
  }),
  model: (config, facts) => {
    const given = setArgs(config);
    return taskModel(taskOf(given), configOf(given), facts);
  },
  loss: (model: TaskModel, batch: data.TensorBatch, rank) => taskOf(getArgs()).loss(model, batch, rank),
  weigh: (batch, config) => taskOf(args(config)).weigh?.(batch) ?? numRows(batch),
  predict: (model: TaskModel, batch: data.TensorBatch) => taskOf(getArgs()).predict(model, batch),
  optimizer: (parameters, config) => optimizerOf(parameters, args(config)),
  schedule: (optimizer, config, { numTrain }) => scheduleOf(optimizer, args(config), numTrain),
});
