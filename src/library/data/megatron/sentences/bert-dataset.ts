import { TroupeError } from "../../../../errors/index.ts";
import type { Tokenizer } from "../../tokenizers/tokenizer.ts";
import { type BertSample, bertSample } from "./bert-sample.ts";
import type { MaskVocabulary } from "./masked-tokens.ts";
import { type MegatronSentenceOptions, sentenceSplits } from "./sentence-dataset.ts";

/** Where the sentences are, and how BERT's samples are made of them. */
export interface MegatronBertOptions extends MegatronSentenceOptions {
  readonly maskProbability: number;
  /** Whether the sentences are parted in two, of which the model says whether they stand in their order. */
  readonly nextSentence: boolean;
  readonly vocabulary: MaskVocabulary;
}

/**
 * Megatron's BERT samples of indexed sentences, by split: see `sentenceSplits`.
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
 * What masking must know of BERT's vocabulary.
 * @param size - of the vocabulary that words at random are drawn from; the tokenizer's own unless told otherwise. Megatron's own
 *   tokenizer counts `[BOS]`, `[EOS]` and extra ids too, which it adds to what the file has: see `t5Vocabulary`
 * @throws {TroupeError} `TOKENIZER_INVALID` for one that is not BERT's
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
