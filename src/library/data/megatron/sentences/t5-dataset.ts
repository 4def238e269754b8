import type { Tokenizer } from "../../tokenizers/tokenizer.ts";
import { maskVocabulary } from "./bert-dataset.ts";
import type { MaskVocabulary } from "./masked-tokens.ts";
import { type MegatronSentenceOptions, sentenceSplits } from "./sentence-dataset.ts";
import { type T5Sample, t5Sample } from "./t5-sample.ts";

/** The vocabulary of Megatron's T5: BERT's words, and behind them what it has none of. */
export interface T5Vocabulary {
  readonly words: MaskVocabulary;
  readonly begin: number;
  readonly end: number;
  /** Tokens that stand for a span each, in turn. */
  readonly sentinels: readonly number[];
  /** Tokens in all. */
  readonly size: number;
}

/** Where the sentences are, and how T5's samples are made of them. */
export interface MegatronT5Options extends MegatronSentenceOptions {
  readonly maskProbability: number;
  /** Tokens of the decoder's row. */
  readonly decoderLength: number;
  readonly vocabulary: T5Vocabulary;
}

/**
 * Megatron's T5 samples of indexed sentences, by split: see `sentenceSplits`.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`
 */
export function megatronT5Samples(options: MegatronT5Options) {
  const { length, decoderLength, maskProbability, vocabulary } = options;
  const { words, begin, end, sentinels } = vocabulary;
  const common = { vocabulary: words, begin, end, sentinels, length, decoderLength, maskProbability };
  return sentenceSplits<T5Sample>(options, {
    numMarks: 2,
    minSentences: 1,
    make: (sentences, targetLength, seed) => t5Sample(sentences, { ...common, targetLength, seed }),
  });
}

/**
 * BERT's vocabulary with `[BOS]`, `[EOS]` and as many sentinels as told behind it, in Megatron's order; what it has already stays
 * where it is.
 * @throws {TroupeError} `TOKENIZER_INVALID` for one that is not BERT's
 */
export function t5Vocabulary(tokenizer: Tokenizer, numSentinels: number): T5Vocabulary {
  const words = maskVocabulary(tokenizer);
  const { spec } = tokenizer;
  const model = spec.kind === "hugging-face" ? spec.tokenizer.model : undefined;
  const { vocab = {} } = (model ?? {}) as { readonly vocab?: Readonly<Record<string, number>> };
  let size = tokenizer.vocabSize;
  const idOf = (token: string): number => vocab[token] ?? size++;
  const [begin, end] = [idOf("[BOS]"), idOf("[EOS]")];
  const sentinels = Array.from({ length: numSentinels }, (_, index) => idOf(`<extra_id_${index}>`));
  return { words, begin, end, sentinels, size };
}
