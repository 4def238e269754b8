import { TroupeError } from "../../errors.ts";
import type { Samples } from "../sample-dataset.ts";
import type { Tokenizer } from "../tokenizers/tokenizer.ts";
import { type BertSample, bertSample } from "./bert-sample.ts";
import { IndexedDataset } from "./indexed-dataset.ts";
import type { MaskVocabulary } from "./masked-tokens.ts";
import { blendedSamples, partsOf, type SplitName, splitNames } from "./parts.ts";
import { sentenceSamples } from "./sentence-samples.ts";
import { type DocumentSplitRule, splitRanges } from "./split-ranges.ts";

/** Where the sentences are, and how samples are made of them. */
export interface MegatronBertOptions {
  /** A prefix of sentences, or `weight prefix weight prefix …`. */
  readonly dataPath: string | readonly (string | number)[];
  readonly split?: string;
  readonly splitRule?: DocumentSplitRule;
  /** Tokens of a sample, padding included. */
  readonly length: number;
  readonly seed: number;
  /** At least so many of each split. */
  readonly numSamples: Readonly<Record<SplitName, number>>;
  readonly maskProbability: number;
  readonly shortProbability: number;
  /** Whether the sentences are parted in two, of which the model says whether they stand in their order. */
  readonly nextSentence: boolean;
  readonly vocabulary: MaskVocabulary;
}

/** Tokens that stand around the sentences of a sample. */
const numMarks = 3;

/**
 * Megatron's BERT samples of indexed sentences, by split; one that holds no document, or no sample, is left out. The sample at a
 * place is the one that Megatron-LM takes there.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`
 */
export function megatronBertSamples(
  options: MegatronBertOptions,
): Readonly<Partial<Record<SplitName, Samples<BertSample> & { at(index: number): BertSample }>>> {
  const parts = partsOf(options.dataPath).map(({ prefix, weight }) => ({
    weight,
    data: IndexedDataset.open(prefix),
  }));
  const found = splitNames.flatMap((name) => {
    const samples = blendedSamples(parts, options.numSamples[name], (data, wanted) =>
      samplesOf(data, name, wanted ?? options.numSamples[name], options),
    );
    return samples === undefined || samples.length === 0 ? [] : [[name, samples] as const];
  });
  return Object.fromEntries(found);
}

function samplesOf(data: IndexedDataset, name: SplitName, wanted: number, options: MegatronBertOptions) {
  const { split = "969, 30, 1", splitRule = "2022", length, seed, nextSentence, vocabulary } = options;
  const [begin, end] = splitRanges(split, data.documents.length - 1, splitRule)[
    splitNames.indexOf(name)
  ] as readonly [number, number];
  if (end <= begin || wanted < 1) return undefined;
  const samples = sentenceSamples({
    documents: data.documents.subarray(begin, end + 1),
    lengths: data.lengths,
    maxSamples: wanted,
    maxLength: length - numMarks,
    shortProbability: options.shortProbability,
    seed,
    minSentences: nextSentence ? 2 : 1,
  });
  return {
    length: samples.length,
    at: (index: number): BertSample => {
      const [first, behind, targetLength] = samples[index] as (typeof samples)[number];
      const sentences = Array.from({ length: behind - first }, (_, place) => data.get(first + place));
      const maskProbability = options.maskProbability;
      return bertSample(sentences, {
        vocabulary,
        targetLength,
        length,
        maskProbability,
        nextSentence,
        seed: seed + index,
      });
    },
  };
}

/**
 * What masking must know of BERT's vocabulary.
 * @throws {TroupeError} `TOKENIZER_INVALID` for one that is not BERT's
 */
export function maskVocabulary({ vocabSize: size, spec }: Tokenizer): MaskVocabulary {
  const model = spec.kind === "hugging-face" ? spec.tokenizer.model : undefined;
  const { vocab = {} } = (model ?? {}) as { readonly vocab?: Readonly<Record<string, number>> };
  const idOf = (token: string): number => {
    const id = vocab[token];
    if (id !== undefined) return id;
    throw new TroupeError("TOKENIZER_INVALID", {
      where: "tokenizer",
      expected: `BERT's vocabulary, with ${token}`,
      got: "one without it",
    });
  };
  const goesOn = new Uint8Array(size);
  for (const [token, id] of Object.entries(vocab)) if (token.startsWith("##")) goesOn[id] = 1;
  return {
    size,
    continuesWord: (token) => goesOn[token] === 1,
    classify: idOf("[CLS]"),
    separate: idOf("[SEP]"),
    mask: idOf("[MASK]"),
    pad: idOf("[PAD]"),
  };
}
