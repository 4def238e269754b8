import { fileErrors, fileFailure } from "../../../errors/index.ts";
import { maxFileBytes, readBoundedText } from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";
import { HuggingFaceTokenizer } from "./hugging-face.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Options of {@link loadWordPiece}. */
export interface WordPieceOptions {
  readonly lowercase: boolean;
  /** Whether accents are removed. Default: as `lowercase`. */
  readonly stripAccents?: boolean | undefined;
  /** Whether each Chinese character is a word. Default: true. */
  readonly separatesChinese?: boolean | undefined;
  /** The longest known word; a longer one is a single unknown token: 100 characters in Hugging Face, 200 in Megatron. */
  readonly maxCharacters?: number;
  /** Special tokens recognized in texts, as Hugging Face does; Megatron cuts them like other words. */
  readonly specials?: readonly string[];
}

const unknown = "[UNK]";

/**
 * Loads BERT's WordPiece from its published file: one token per line, whose line number is its id.
 * @throws {TroupeError} `TOKENIZER_INVALID` when the file cannot be read or has no `[UNK]`
 */
export async function loadWordPiece(path: string, options: WordPieceOptions): Promise<Tokenizer> {
  const { lowercase, stripAccents = null, separatesChinese = true } = options;
  const { maxCharacters = 100, specials = [] } = options;
  const tokens = (await readText(path)).replace(/\r?\n$/, "").split(/\r?\n/);
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  if (!(unknown in vocab)) throw invalid(path, `${unknown} among the tokens`, "none");
  return new HuggingFaceTokenizer({
    version: "1.0",
    added_tokens: specials.map((content) => ({ id: vocab[content], content, special: true })),
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: separatesChinese,
      strip_accents: stripAccents,
      lowercase,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: null,
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      unk_token: unknown,
      continuing_subword_prefix: "##",
      max_input_chars_per_word: maxCharacters,
      vocab,
    },
  });
}

async function readText(path: string): Promise<string> {
  noteFile(path, { isHashed: true });
  try {
    return await readBoundedText(path, maxFileBytes.tokenizer);
  } catch (cause) {
    throw invalid(path, "a readable file", fileFailure(cause));
  }
}

const invalid = fileErrors("TOKENIZER_INVALID", "tokenizer", "give BERT's vocab.txt");
