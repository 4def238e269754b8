import { TroupeError } from "../../../../errors/index.ts";
import type { Tokenizer } from "../../tokenizers/tokenizer.ts";
import { type BertSample, bertSample } from "./bert-sample.ts";
import type { MaskVocabulary } from "./masked-tokens.ts";
import { type MegatronSentenceOptions, sentenceSplits } from "./sentence-dataset.ts";

/** Options of {@link megatronBertSamples}. */
export interface MegatronBertOptions extends MegatronSentenceOptions {
  readonly maskProbability: number;
  /** Whether each sample is a pair of parts, and the model predicts whether they are in order. */
  readonly nextSentence: boolean;
  readonly vocabulary: MaskVocabulary;
}

/**
 * Returns Megatron's BERT samples of indexed sentences, by split: see `sentenceSplits`.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`
 */
export function megatronBertSamples(options: MegatronBertOptions) {
  const { vocabulary, length, maskProbability, nextSentence } = options;
  return sentenceSplits<BertSample>(options, {
    numMarks: 3,
    minSentences: nextSentence ? 2 : 1,
    make: (sentences, targetLength, seed) =>
      bertSample(sentences, { vocabulary, targetLength, length, maskProbability, nextSentence, seed }),
  });
}

/**
 * Finds the tokens of BERT's vocabulary that masking needs.
 * @param size - of the vocabulary that random words are drawn from. Default: the tokenizer's. Megatron's own tokenizer
 * also counts `[BOS]`, `[EOS]` and extra ids, which it adds to the file's: see `t5Vocabulary`
 * @throws {TroupeError} `TOKENIZER_INVALID` for another kind of vocabulary
 */
export function maskVocabulary(
  { vocabSize, spec }: Pick<Tokenizer, "vocabSize" | "spec">,
  size = vocabSize,
): MaskVocabulary {
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
