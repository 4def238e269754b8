import type { Tokenizer } from "../../tokenizers/tokenizer.ts";
import { maskVocabulary } from "./bert-dataset.ts";
import type { MaskVocabulary } from "./masked-tokens.ts";
import { type MegatronSentenceOptions, sentenceSplits } from "./sentence-dataset.ts";
import { type T5Sample, t5Sample } from "./t5-sample.ts";

/** The vocabulary of Megatron's T5: BERT's, followed by the tokens that it lacks. */
export interface T5Vocabulary {
  readonly words: MaskVocabulary;
  readonly begin: number;
  readonly end: number;
  /** Tokens that each stand for a span, in turn. */
  readonly sentinels: readonly number[];
  /** Number of all tokens. */
  readonly size: number;
}

/** Options of {@link megatronT5Samples}. */
export interface MegatronT5Options extends MegatronSentenceOptions {
  readonly maskProbability: number;
  /** Length of the decoder's row, in tokens. */
  readonly decoderLength: number;
  readonly vocabulary: T5Vocabulary;
}

/**
 * Returns Megatron's T5 samples of indexed sentences, by split: see `sentenceSplits`.
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
 * Extends BERT's vocabulary by `[BOS]`, `[EOS]` and `numSentinels` sentinels, in Megatron's order; tokens that it
 * already has keep their ids.
 * @throws {TroupeError} `TOKENIZER_INVALID` for another kind of vocabulary
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
