import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { ownValue } from "../../errors/untrusted/index.ts";
import * as data from "../../library/data/index.ts";
import { type Arguments, getArgs } from "./arguments.ts";
import { argumentError } from "./run-parts.ts";

/** Options of pre-training data, by the names of Megatron's builders. */
export interface PretrainingData {
  /** `--data-path`: a prefix, or weights and prefixes. */
  readonly dataPrefix: string;
  /** `--data-impl`: required format of the data; mmap, lazy, cached, or infer for any. */
  readonly dataImpl?: string;
  readonly splitsString: string;
  readonly trainValidTestNumSamples: readonly [train: number, valid: number, test: number];
  readonly seed: number;
  /** Without effect: there is no warm-up. */
  readonly skipWarmup?: boolean;
}

type ThreeSplits<T> = readonly [
  train: data.Samples<T>,
  valid: data.Samples<T> | null,
  test: data.Samples<T> | null,
];

/** A row of a causal model: one token more than it predicts. */
export type GptRecord = { readonly text: Tensor };

/** A row of BERT's pre-training, by Hugging Face's names in camel case, int64; labels are −100 at tokens that are not predicted. */
export type BertRecord = {
  readonly inputIds: Tensor;
  readonly attentionMask: Tensor;
  readonly tokenTypeIds: Tensor;
  readonly labels: Tensor;
  readonly nextSentenceLabel: Tensor;
};

/**
 * Megatron's `build_train_valid_test_datasets`: GPT samples, `text` int64 [seqLength + 1].
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`, `ARGUMENTS` if no training data is left
 */
export function buildTrainValidTestDatasets(
  options: PretrainingData & { readonly seqLength: number },
): ThreeSplits<GptRecord> {
  const { dataPrefix, splitsString, seed, seqLength } = options;
  const splits = data.megatronGptSamples({
    dataPath: prefixesOf(options),
    split: splitsString,
    length: seqLength,
    seed,
    numSamples: numSamplesOf(options),
  });
  return threeOf(dataPrefix, splits, (row) => ({ text: integers(row) }));
}

/**
 * Rapidformer's `build_train_valid_test_datasets_for_huggingface`: Megatron's BERT samples under Hugging Face's names.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`, `ARGUMENTS` if no training data is left
 */
export function buildTrainValidTestDatasetsForHuggingface(
  options: PretrainingData & {
    readonly maxSeqLength: number;
    readonly maskedLmProb: number;
    readonly shortSeqProb: number;
    readonly binaryHead?: boolean;
    readonly tokenizer: data.Tokenizer;
    /** Size of the vocabulary that random words are drawn from. Default: the tokenizer's. */
    readonly vocabSize?: number;
  },
): ThreeSplits<BertRecord> {
  const { dataPrefix, splitsString, seed, maxSeqLength, binaryHead = true, tokenizer } = options;
  const splits = data.megatronBertSamples({
    dataPath: prefixesOf(options),
    split: splitsString,
    length: maxSeqLength,
    seed,
    numSamples: numSamplesOf(options),
    maskProbability: options.maskedLmProb,
    shortProbability: options.shortSeqProb,
    nextSentence: binaryHead,
    vocabulary: data.maskVocabulary(tokenizer, options.vocabSize),
  });
  return threeOf(dataPrefix, splits, ({ tokens, types, labels, paddingMask, isRandom }) => ({
    inputIds: integers(tokens),
    attentionMask: integers(paddingMask),
    tokenTypeIds: integers(types),
    labels: integers(labels.map((label) => (label < 0 ? -100 : label))),
    nextSentenceLabel: tensor(BigInt64Array.of(isRandom ? 1n : 0n), { dtype: "int64" }).view([]),
  }));
}

/** A row of T5's pre-training, by Hugging Face's names in camel case, int64; labels are −100 at padding. */
export type T5Record = {
  readonly inputIds: Tensor;
  readonly attentionMask: Tensor;
  readonly decoderInputIds: Tensor;
  readonly decoderAttentionMask: Tensor;
  readonly labels: Tensor;
};

/**
 * Megatron's T5 samples, in which sentinels replace masked spans, under Hugging Face's names.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`, `ARGUMENTS` if no training data is left
 */
export function buildTrainValidTestDatasetsForT5(
  options: PretrainingData & {
    readonly maxSeqLength: number;
    /** Length of the decoder's rows. Default: that of the encoder's. */
    readonly maxSeqLengthDec?: number;
    readonly maskedLmProb: number;
    readonly shortSeqProb: number;
    readonly vocabulary: data.T5Vocabulary;
  },
): ThreeSplits<T5Record> {
  const {
    dataPrefix,
    splitsString,
    seed,
    maxSeqLength,
    maxSeqLengthDec = maxSeqLength,
    vocabulary,
  } = options;
  const splits = data.megatronT5Samples({
    dataPath: prefixesOf(options),
    split: splitsString,
    length: maxSeqLength,
    decoderLength: maxSeqLengthDec,
    seed,
    numSamples: numSamplesOf(options),
    maskProbability: options.maskedLmProb,
    shortProbability: options.shortSeqProb,
    vocabulary,
  });
  const present = (tokens: Int32Array) => tokens.map((token) => Number(token !== vocabulary.words.pad));
  return threeOf(dataPrefix, splits, ({ tokens, decoderTokens, labels }) => ({
    inputIds: integers(tokens),
    attentionMask: integers(present(tokens)),
    decoderInputIds: integers(decoderTokens),
    decoderAttentionMask: integers(present(decoderTokens)),
    labels: integers(labels.map((label) => (label < 0 ? -100 : label))),
  }));
}

/**
 * Opens the tokenizer of `--tokenizer-type` with its files, else of the model's folder: Rapidformer's `get_tokenizer()`.
 * @throws {TroupeError} `ARGUMENTS` if neither is given; `TOKENIZER_INVALID`
 */
export async function getTokenizer(args: Arguments = getArgs()): Promise<data.Tokenizer> {
  const { tokenizerType, vocabFile, mergeFile, pretrainedModelNameOrPath: folder } = args;
  if (tokenizerType === "" && (vocabFile !== "" || mergeFile !== ""))
    throw argumentError(
      `--tokenizer-type with ${vocabFile === "" ? "--merge-file" : "--vocab-file"}`,
      "none",
    );
  if (tokenizerType === "" || (vocabFile === "" && folder !== "")) {
    if (folder !== "") return data.loadTokenizer(folder);
    throw argumentError(
      "--tokenizer-type with --vocab-file, or a model whose folder has a tokenizer",
      "neither",
    );
  }
  if (vocabFile === "") throw argumentError(`--vocab-file with --tokenizer-type ${tokenizerType}`, "none");
  if (tokenizerType !== "GPT2BPETokenizer")
    return data.loadWordPiece(vocabFile, {
      lowercase: tokenizerType === "BertWordPieceLowerCase",
      maxCharacters: 200,
    });
  if (mergeFile === "") throw argumentError("--merge-file with --tokenizer-type GPT2BPETokenizer", "none");
  return data.loadGpt2Tokenizer({ vocabPath: vocabFile, mergesPath: mergeFile });
}

/** Id of the token that ends a document; undefined if the vocabulary has none. */
export function endOfDocument({ spec }: data.Tokenizer): number | undefined {
  if (spec.kind !== "hugging-face") return undefined;
  const { added_tokens: added, model } = spec.tokenizer as {
    readonly added_tokens: readonly { readonly content: string; readonly id: number }[];
    readonly model: { readonly vocab: Readonly<Record<string, number>> };
  };
  const ids = ["<|endoftext|>", "[SEP]", "</s>"].map(
    (name) => added.find(({ content }) => content === name)?.id ?? model.vocab[name],
  );
  return ids.find((id) => id !== undefined);
}

/** lazy and cached name the same older format. */
const formats: Readonly<Record<string, string>> = { mmap: "mmap", lazy: "cached", cached: "cached" };

/** @returns prefixes and weights, after checking that all have the requested format */
function prefixesOf({ dataPrefix, dataImpl = "infer" }: PretrainingData): readonly string[] {
  const words = dataPathOf(dataPrefix);
  const asked = ownValue(formats, dataImpl);
  const prefixes = words.length === 1 ? words : words.filter((_, index) => index % 2 === 1);
  for (const prefix of asked === undefined ? [] : prefixes) {
    using indexed = data.IndexedDataset.open(prefix);
    if (indexed.format !== asked)
      throw argumentError(
        `data of the format of --data-impl ${dataImpl} at ${prefix}`,
        indexed.format,
        "--data-impl infer takes either",
      );
  }
  return words;
}

/** Splits weights and prefixes, which are complete paths: `0.7 /data/books 0.3 /data/web`. */
function dataPathOf(text: string): readonly string[] {
  const parts = [...text.matchAll(/([\d.]+) (\/.*?)(?= [\d.]+ \/|$)/g)];
  const isBlend = parts.length > 0 && parts[0]?.index === 0;
  return isBlend ? parts.flatMap(([, weight = "", prefix = ""]) => [weight, prefix]) : [text];
}

function numSamplesOf({ trainValidTestNumSamples: [train, validation, test] }: PretrainingData) {
  return { train, validation, test };
}

function threeOf<T, R>(
  source: string,
  { train, validation, test }: Readonly<Partial<Record<data.SplitName, data.IndexedSamples<T>>>>,
  recordOf: (sample: T) => R,
): ThreeSplits<R> {
  const recorded = (samples: data.IndexedSamples<T> | undefined): data.Samples<R> | null =>
    samples === undefined ? null : { length: samples.length, at: (index) => recordOf(samples.at(index)) };
  const first = recorded(train);
  if (first !== null) return [first, recorded(validation), recorded(test)];
  throw argumentError(`documents for training in ${source}`, "none", "more data, or another --split");
}

function integers(values: Int32Array): Tensor {
  return tensor(BigInt64Array.from(values, BigInt), { dtype: "int64" });
}
