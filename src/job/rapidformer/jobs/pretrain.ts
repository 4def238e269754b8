// The job of `troupe pretrain` without a script: BERT on masked sentences and their order, T5 on masked spans, or a causal model on the
// next token.

import type { Tensor } from "../../../compute/tensor/index.ts";
import * as data from "../../../library/data/index.ts";
import * as models from "../../../library/models/index.ts";
import { defineJob } from "../../index.ts";
import { type Arguments, defaultArguments, getArgs, setArgs } from "../arguments.ts";
import { factsOf, type Facts as SampleFacts } from "../engine.ts";
import { expertsOf, unreadExperts } from "../experts.ts";
import { leftToRightRows } from "../left-to-right-rows.ts";
import { paddedVocabulary, withArchitecture } from "../model-fields.ts";
import {
  buildTrainValidTestDatasets,
  buildTrainValidTestDatasetsForHuggingface,
  buildTrainValidTestDatasetsForT5,
  endOfDocument,
  getTokenizer,
} from "../pretraining-data.ts";
import {
  argumentError,
  optimizerOf,
  planOf,
  readModelConfig,
  refuseShapes,
  refuseUnread,
  scheduleOf,
} from "../run-parts.ts";
import { evaluationOf, numSamplesOf } from "../trainer.ts";

type Fields = Readonly<Record<string, unknown>>;
const args = (config: Readonly<Record<string, string | number | boolean>>) => config as Arguments;

/** Sizes do not determine a family: the first family with the training objective of the tokenizer is taken. */
function fieldsOf(given: Arguments): Fields {
  const { pretrainedModelNameOrPath: folder, tokenizerType } = given;
  if (folder !== "") return withArchitecture(readModelConfig(folder), given);
  if (tokenizerType === "" || !(given.numLayers > 0))
    throw argumentError(
      "--pretrained-model-name-or-path, or --tokenizer-type with --num-layers, --hidden-size and --num-attention-heads",
      "neither",
    );
  const isOf = ({ fillsSpans = false, heads }: models.Family) => {
    if (tokenizerType === "GPT2BPETokenizer") return heads.causal_lm !== undefined;
    return given.vocabExtraIds > 0 ? fillsSpans : heads.pretraining !== undefined;
  };
  return withArchitecture({ model_type: models.families().find(isOf)?.modelType }, given);
}

/** The loss, and its parts if the model has experts. */
interface CausalLoss {
  readonly loss: Tensor;
  readonly losses?: Readonly<Record<string, Tensor>>;
}

const inParts = ({ loss, losses }: CausalLoss) => losses ?? loss;

/** The common type of all causal models. */
interface CausalModel {
  forward(inputIds: Tensor, asked: models.TextPlaces & { readonly targets: Tensor }): CausalLoss;
}

const causal = (model: models.TaskModel) => model as unknown as CausalModel;

/** Rows of `length` + 1 tokens as one row, with separate documents. */
function documentsIn(text: Tensor, ends: data.DocumentEnds): data.Batch {
  const length = (text.shape[1] ?? 1) - 1;
  const { lossMask: _, ...row } = leftToRightRows(text.narrow(1, 0, length).contiguous(), ends);
  return { ...row, targets: text.narrow(1, 1, length).reshape([1, -1]) };
}

/** Whether documents of a row are separated, by attention or by positions. */
const tellsApart = ({ resetPositionIds, resetAttentionMask }: Arguments) =>
  resetPositionIds || resetAttentionMask;

/** Tokens that a model learns to predict: the next ones, masked ones, or those of masked spans, which sentinels mark. */
type Objective = "next tokens" | "masked tokens" | "masked spans";

function objectiveOf(fields: Fields): Objective {
  if (models.familyOf(fields)?.fillsSpans) return "masked spans";
  return models.hasModel("pretraining", fields) ? "masked tokens" : "next tokens";
}

/** Settings that the samples of a model do not depend on. */
const unreadFor: Readonly<Record<Objective, readonly string[]>> = {
  "next tokens": ["vocabExtraIds", "maskProb", "shortSeqProb", "bertBinaryHead", "decoderSeqLength"],
  "masked tokens": ["eodMaskLoss", "decoderSeqLength"],
  "masked spans": ["eodMaskLoss", "bertBinaryHead"],
};

interface Facts extends SampleFacts {
  readonly vocabSize: number;
  /** Id of the token that is left out of the loss, the end of documents; −1: none. */
  readonly ignored: number;
  /** Fields of T5's config.json that its vocabulary decides; null for other models. */
  readonly ofT5: {
    readonly decoder_start_token_id: number;
    readonly eos_token_id: number;
    readonly pad_token_id: number;
  } | null;
}

/** @param end - id of the token that ends documents; −1: none @throws {TroupeError} `ARGUMENTS` for a flag that the model would not read */
function refuseOthers(given: Arguments, fields: Fields, end: number): void {
  const objective = objectiveOf(fields);
  const isCausal = objective === "next tokens";
  if (tellsApart(given) && !(isCausal && end >= 0))
    throw argumentError(
      "a causal model, and a token that ends documents, with --reset-position-ids and --reset-attention-mask",
      isCausal ? "a vocabulary without one" : String(fields.model_type),
    );
  if (given.numExperts > 0 && models.familyOf(fields)?.withExperts === undefined) {
    const types = models.families().flatMap(({ withExperts, modelType }) => (withExperts ? [modelType] : []));
    throw argumentError(`--num-experts with ${types.join(", ")}`, String(fields.model_type));
  }
  refuseUnread(given, unreadExperts(given), "without --num-experts");
  refuseUnread(given, unreadFor[objective], `in pre-training of ${fields.model_type}`);
  refuseUnread(given, ["dataDir", "dataName", "padToMultipleOf"], "in pre-training");
}

type Vocabulary = Pick<Facts, "vocabSize" | "ofT5"> & { readonly t5?: data.T5Vocabulary };

/** Without a config.json BERT's vocabulary is Megatron's: it includes the tokens that the tokenizer adds to the file. */
function vocabularyOf(given: Arguments, fields: Fields, tokenizer: data.Tokenizer): Vocabulary {
  const objective = objectiveOf(fields);
  const isOfFile = objective !== "masked tokens" || fields.vocab_size !== undefined;
  if (objective !== "masked spans" && isOfFile) return { vocabSize: tokenizer.vocabSize, ofT5: null };
  const t5 = data.t5Vocabulary(tokenizer, given.vocabExtraIds);
  if (objective !== "masked spans") return { vocabSize: t5.size, ofT5: null };
  const { begin, end, words } = t5;
  const ofT5 = { decoder_start_token_id: begin, eos_token_id: end, pad_token_id: words.pad };
  return { vocabSize: t5.size, ofT5, t5 };
}

/** The samples of each split that has some. */
function splitsOf(
  given: Arguments,
  objective: Objective,
  tokenizer: data.Tokenizer,
  { t5, vocabSize }: Vocabulary,
): Readonly<Record<string, data.Samples<data.SampleRecord>>> {
  const { seqLength, decoderSeqLength, maskProb: maskedLmProb, shortSeqProb, bertBinaryHead } = given;
  const common = {
    dataPrefix: given.dataPath,
    dataImpl: given.dataImpl,
    splitsString: given.split,
    trainValidTestNumSamples: numSamplesOf(given),
    seed: given.seed,
  };
  const masked = { ...common, maxSeqLength: seqLength, maskedLmProb, shortSeqProb };
  const three = () => {
    if (t5 !== undefined)
      return buildTrainValidTestDatasetsForT5({
        ...masked,
        ...(decoderSeqLength > 0 && { maxSeqLengthDec: decoderSeqLength }),
        vocabulary: t5,
      });
    if (objective === "next tokens") return buildTrainValidTestDatasets({ ...common, seqLength });
    const options = { ...masked, binaryHead: bertBinaryHead, tokenizer, vocabSize };
    return buildTrainValidTestDatasetsForHuggingface(options);
  };
  const [train, validation, test] = three();
  const present = Object.entries({ train, validation, test }).filter(([, samples]) => samples !== null);
  return Object.fromEntries(present) as Readonly<Record<string, data.Samples<data.SampleRecord>>>;
}

export default defineJob({
  config: defaultArguments,
  data: async (config, { seed }): Promise<data.Dataset<data.Batch, Facts>> => {
    const given = setArgs({ ...config, seed });
    refuseShapes(given, "pre-training, whose samples are of one length");
    const tokenizer = await getTokenizer(given);
    const { dataPath, datasetPath, seqLength, eodMaskLoss } = given;
    if (dataPath === "")
      throw argumentError("--data-path", "none", "the prefix that troupe preprocess wrote");
    if (!(seqLength > 0)) throw argumentError("--seq-length", "none", "such as --seq-length 512");
    const fields = fieldsOf(given);
    const end = endOfDocument(tokenizer) ?? -1;
    refuseOthers(given, fields, end);
    const vocabulary = vocabularyOf(given, fields, tokenizer);
    const splits = splitsOf(given, objectiveOf(fields), tokenizer, vocabulary);
    const { vocabSize, ofT5 } = vocabulary;
    const ends = {
      endOfDocument: end,
      resetPositions: given.resetPositionIds,
      resetAttention: given.resetAttentionMask,
    };
    return data.sampleDataset<data.SampleRecord, data.Batch, Facts>({
      facts: {
        ...factsOf(datasetPath || dataPath, splits),
        ...{ vocabSize, ofT5, ignored: eodMaskLoss ? end : -1 },
      },
      seed,
      shuffle: false,
      splits,
      collate: (samples) => {
        const batch = data.stack()(samples) as data.Batch;
        return tellsApart(given) ? documentsIn(batch.text as Tensor, ends) : batch;
      },
      countTokens: ({ attentionMask, text, inputIds }) =>
        ((attentionMask ?? text ?? inputIds) as Tensor).numel,
    });
  },
  training: (config, { numTrain, numSamples }: Facts) => ({
    ...planOf(args(config), numTrain),
    ...evaluationOf(args(config), { numSamples }),
  }),
  model: (config, { vocabSize, ignored, ofT5 }: Facts) => {
    const given = setArgs({ ...config, ignored });
    const fields = fieldsOf(given);
    const size = { vocab_size: fields.vocab_size ?? paddedVocabulary(vocabSize, given) };
    const { withExperts } = models.familyOf(fields) ?? {};
    if (given.numExperts > 0 && withExperts)
      return withExperts({ ...fields, ...size }, expertsOf(given)) as unknown as models.TaskModel;
    const tasks = {
      "next tokens": "causal_lm",
      "masked tokens": given.bertBinaryHead ? "pretraining" : "masked_lm",
      "masked spans": "seq2seq_lm",
    } as const;
    return models.autoModel(tasks[objectiveOf(fields)], { ...ofT5, ...fields, ...size });
  },
  loss: (model: models.TaskModel, batch: data.TensorBatch) => {
    const ignored = Number(getArgs().ignored ?? -1);
    const counted = (inputIds: Tensor, targets: Tensor) =>
      ignored < 0 ? targets : targets.maskedFill(inputIds.eq(ignored), -100);
    if (batch.positionIds !== undefined) {
      const { inputIds, targets, ...places } = batch as Readonly<Record<"inputIds" | "targets", Tensor>>;
      return inParts(causal(model).forward(inputIds, { targets: counted(inputIds, targets), ...places }));
    }
    if (batch.text === undefined) {
      if (batch.decoderInputIds !== undefined)
        return model.forward(batch as models.ModelBatch).loss as Tensor;
      const { nextSentenceLabel, ...rows } = batch as Readonly<Record<string, Tensor>>;
      return model.forward(getArgs().bertBinaryHead ? { ...rows, nextSentenceLabel } : rows).loss as Tensor;
    }
    const tokens = batch.text as Tensor;
    const length = (tokens.shape[1] ?? 1) - 1;
    const inputIds = tokens.narrow(1, 0, length).contiguous();
    const targets = tokens.narrow(1, 1, length).contiguous();
    return inParts(causal(model).forward(inputIds, { targets: counted(inputIds, targets) }));
  },
  optimizer: (parameters, config) => optimizerOf(parameters, args(config)),
  schedule: (optimizer, config, { numTrain }) => scheduleOf(optimizer, args(config), numTrain),
});
