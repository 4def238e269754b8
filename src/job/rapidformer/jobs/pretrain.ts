// The job of `troupe pretrain` without a script: BERT on masked sentences and their order, T5 on masked spans, or a causal model on the
// next token.

import type { Tensor } from "../../../compute/tensor/index.ts";
import * as data from "../../../library/data/index.ts";
import * as models from "../../../library/models/index.ts";
import { defineJob } from "../../index.ts";
import { type Arguments, defaultArguments, getArgs, setArgs } from "../arguments.ts";
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

/** Whether the model predicts masked tokens and not the next ones. */
const isMasked = (fields: Fields) => models.hasModel("pretraining", fields);

/** Whether the model predicts masked spans, marked by sentinels. */
const fillsSpans = (fields: Fields) => models.familyOf(fields)?.fillsSpans === true;

const [ofMasks, ofBert, ofT5] = [["maskProb", "shortSeqProb"], ["bertBinaryHead"], ["decoderSeqLength"]];

/** Settings that the samples of a model do not depend on. */
function unreadFor(fields: Fields): readonly string[] {
  if (fillsSpans(fields)) return ["eodMaskLoss", ...ofBert];
  if (isMasked(fields)) return ["eodMaskLoss", ...ofT5];
  return ["vocabExtraIds", ...ofMasks, ...ofBert, ...ofT5];
}

interface Facts {
  readonly source: string;
  readonly vocabSize: number;
  readonly numTrain: number;
  readonly numSamples: Readonly<Record<string, number>>;
  /** Id of the token that is left out of the loss, the end of documents; −1: none. */
  readonly ignored: number;
  /** Fields of T5's config.json that its vocabulary decides; null for other models. */
  readonly ofT5: {
    readonly decoder_start_token_id: number;
    readonly eos_token_id: number;
    readonly pad_token_id: number;
  } | null;
}

export default defineJob({
  config: defaultArguments,
  data: async (config, { seed }): Promise<data.Dataset<data.Batch, Facts>> => {
    const given = setArgs({ ...config, seed });
    refuseShapes(given, "pre-training, whose samples are of one length");
    const tokenizer = await getTokenizer(given);
    const { dataPath, seqLength, eodMaskLoss, maskProb, shortSeqProb, bertBinaryHead } = given;
    if (dataPath === "")
      throw argumentError("--data-path", "none", "the prefix that troupe preprocess wrote");
    if (!(seqLength > 0)) throw argumentError("--seq-length", "none", "such as --seq-length 512");
    const common = {
      dataPrefix: dataPath,
      dataImpl: given.dataImpl,
      splitsString: given.split,
      trainValidTestNumSamples: numSamplesOf(given),
      seed,
    };
    const fields = fieldsOf(given);
    const end = endOfDocument(tokenizer) ?? -1;
    const isCausal = !fillsSpans(fields) && !isMasked(fields);
    if (tellsApart(given) && !(isCausal && end >= 0))
      throw argumentError(
        "a causal model, and a token that ends documents, with --reset-position-ids and --reset-attention-mask",
        isCausal ? "a vocabulary without one" : String(fields.model_type),
      );
    if (given.numExperts > 0 && models.familyOf(fields)?.withExperts === undefined) {
      const types = models
        .families()
        .flatMap(({ withExperts, modelType }) => (withExperts ? [modelType] : []));
      throw argumentError(`--num-experts with ${types.join(", ")}`, String(fields.model_type));
    }
    refuseUnread(given, unreadExperts(given), "without --num-experts");
    refuseUnread(given, unreadFor(fields), `in pre-training of ${fields.model_type}`);
    refuseUnread(given, ["dataDir", "dataName", "padToMultipleOf"], "in pre-training");
    const ends = {
      endOfDocument: end,
      resetPositions: given.resetPositionIds,
      resetAttention: given.resetAttentionMask,
    };
    // Without a config.json the vocabulary is Megatron's: it includes the tokens that the tokenizer adds to the file.
    const ownSize =
      isMasked(fields) && fields.vocab_size === undefined
        ? data.t5Vocabulary(tokenizer, given.vocabExtraIds).size
        : undefined;
    const vocabulary = fillsSpans(fields) ? data.t5Vocabulary(tokenizer, given.vocabExtraIds) : undefined;
    const [train, validation, test] = vocabulary
      ? buildTrainValidTestDatasetsForT5({
          ...common,
          maxSeqLength: seqLength,
          ...(given.decoderSeqLength > 0 && { maxSeqLengthDec: given.decoderSeqLength }),
          maskedLmProb: maskProb,
          shortSeqProb,
          vocabulary,
        })
      : isMasked(fields)
        ? buildTrainValidTestDatasetsForHuggingface({
            ...common,
            maxSeqLength: seqLength,
            maskedLmProb: maskProb,
            shortSeqProb,
            binaryHead: bertBinaryHead,
            tokenizer,
            ...(ownSize !== undefined && { vocabSize: ownSize }),
          })
        : buildTrainValidTestDatasets({ ...common, seqLength });
    const splits = Object.fromEntries(
      Object.entries({ train, validation, test }).filter(([, samples]) => samples !== null),
    ) as Record<string, typeof train>;
    const lengths = Object.entries(splits).map(([name, { length }]) => [name, length]);
    const numSamples = Object.fromEntries(lengths) as Record<string, number>;
    const facts = {
      source: given.datasetPath || dataPath,
      vocabSize: vocabulary?.size ?? ownSize ?? tokenizer.vocabSize,
      numTrain: train.length,
      numSamples,
      ignored: eodMaskLoss ? end : -1,
      ofT5: vocabulary
        ? {
            decoder_start_token_id: vocabulary.begin,
            eos_token_id: vocabulary.end,
            pad_token_id: vocabulary.words.pad,
          }
        : null,
    };
    return data.sampleDataset<data.SampleRecord, data.Batch, Facts>({
      facts,
      seed,
      shuffle: false,
      splits: splits as unknown as Readonly<Record<string, data.Samples<data.SampleRecord>>>,
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
    const masked = given.bertBinaryHead ? "pretraining" : "masked_lm";
    const { withExperts } = models.familyOf(fields) ?? {};
    if (given.numExperts > 0 && withExperts)
      return withExperts({ ...fields, ...size }, expertsOf(given)) as unknown as models.TaskModel;
    if (fillsSpans(fields)) return models.autoModel("seq2seq_lm", { ...ofT5, ...fields, ...size });
    return models.autoModel(isMasked(fields) ? masked : "causal_lm", { ...fields, ...size });
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
