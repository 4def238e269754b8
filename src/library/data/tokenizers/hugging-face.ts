import { type AlignedText, aligned, type Span } from "./aligned-text.ts";
import { type BertNormalizer, bertSpans } from "./bert-words.ts";
import { createEngine, type Engine } from "./engine.ts";
import { Gpt2Pieces } from "./gpt2-pieces.ts";
import { type Normalizer, normalizerOf, prepended } from "./normalizers.ts";
import { type Spelled, type Spelling, tokenSpans } from "./spans.ts";
import { newTokenArray, type TokenArray, tokenDType } from "./token-dtype.ts";
import type { LegalCuts, Tokenizer, TokenizerSpec } from "./tokenizer.ts";
import { checkTokenizerJson, type TokenizerJson } from "./tokenizer-json.ts";
import { WORD_BEGIN } from "./unigram.ts";
import { WordFinder } from "./word-finder.ts";

/**
 * A tokenizer described by a Hugging Face `tokenizer.json`, such as GPT-2's byte-level BPE; runs on the package
 * `@huggingface/tokenizers`. Recognizes special tokens in the text, adds none.
 */
export class HuggingFaceTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly spec: Extract<TokenizerSpec, { kind: "hugging-face" }>;
  readonly legalCuts: LegalCuts;
  readonly #engine: Engine;
  readonly #pieces: Gpt2Pieces | undefined;
  readonly #spelling: Spelling;
  readonly #isUnigram: boolean;
  readonly #normalizer: Normalizer;
  readonly #preTokenizer: TokenizerJson["pre_tokenizer"];
  readonly #asBert: BertNormalizer | undefined;
  /** Finds special tokens as they are written in texts. */
  readonly #specials: WordFinder;

  /**
   * @param tokenizer - content of a `tokenizer.json`
   * @throws {TroupeError} `TOKENIZER_INVALID` when the engine refuses it
   */
  constructor(tokenizer: Readonly<Record<string, unknown>>) {
    const json = checkTokenizerJson(tokenizer);
    const likeGpt2 = splitsLikeGpt2(json);
    this.#engine = createEngine(likeGpt2 ? { ...json, pre_tokenizer: singlePieces } : json);
    this.spec = { kind: "hugging-face", tokenizer };
    this.vocabSize = this.#engine.model.vocab.length;
    this.#isUnigram = Array.isArray(json.model.vocab);
    this.#normalizer = normalizerOf(json.normalizer) ?? ((text) => text);
    this.#preTokenizer = json.pre_tokenizer;
    this.#asBert = json.normalizer?.type === "BertNormalizer" ? json.normalizer : undefined;
    this.#specials = new WordFinder(json.added_tokens.map(({ content }) => content));
    const prefixSpace = json.pre_tokenizer?.add_prefix_space === true;
    this.#spelling = spellingOf(json, prefixSpace);
    if (likeGpt2) {
      const encodePiece = (piece: string) => this.#engine.encode(piece).ids;
      this.#pieces = new Gpt2Pieces(json.added_tokens, encodePiece, { prefixSpace });
    }
    const takesSpaceIn = json.added_tokens.some(
      ({ content, lstrip, rstrip }) => lstrip || rstrip || /\s/u.test(content),
    );
    this.legalCuts = likeGpt2 && !prefixSpace && !takesSpaceIn ? "before-whitespace" : "nowhere";
  }

  encode(text: string): TokenArray {
    const ids = this.#pieces?.encode(text) ?? this.#engine.encode(this.#prepared(text)).ids;
    const tokens = newTokenArray(tokenDType(this.vocabSize), ids.length);
    tokens.set(ids);
    return tokens;
  }

  /** Encodes `text` like {@link encode}, and also returns the range of each token in it. */
  encodeWithSpans(text: string): { readonly ids: readonly number[]; readonly spans: readonly Span[] } {
    const { ids, tokens } = this.#spelled(text);
    const isKnown = (character: string) => this.#isKnown(character);
    const spans =
      this.#bertSpans(text, tokens) ?? tokenSpans(this.#letters(text), tokens, this.#spelling, isKnown);
    return { ids, spans };
  }

  #spelled(text: string): { readonly ids: readonly number[]; readonly tokens: readonly Spelled[] } {
    // For unknown text, Unigram's tokens show the characters.
    if (this.#isUnigram) return this.#engine.encode(text);
    const ids = [...this.encode(text)];
    const unknown = this.#engine.model.unk_token_id;
    return {
      ids,
      tokens: ids.map((id) => (id === unknown ? undefined : (this.#engine.tokenOf(id) ?? ""))),
    };
  }

  /** A text as its tokens spell it: special tokens unchanged, the text between them normalized. */
  #letters(text: string): AlignedText {
    return [...this.#specials.partsOf(text)].flatMap(({ span: [begin, end], isWord }) => {
      const part = aligned(text.slice(begin, end), begin);
      return isWord ? part : this.#spaced(this.#normalizer(part), begin === 0);
    });
  }

  /** Replaces spaces by their marks, and adds one in front of words where the tokenizer does. */
  #spaced(text: AlignedText, isFirst: boolean): AlignedText {
    if (this.#preTokenizer === null) return text;
    const {
      type,
      add_prefix_space,
      prepend_scheme = "always",
      replacement = WORD_BEGIN,
    } = this.#preTokenizer;
    if (type === "ByteLevel" && add_prefix_space === true && text[0]?.character !== " ")
      return prepended(text, " ");
    if (type !== "Metaspace") return text;
    const letters = text.map(({ character, span }) => ({
      character: character === " " ? replacement : character,
      span,
    }));
    const isPrepended = prepend_scheme === "always" || (prepend_scheme === "first" && isFirst);
    return isPrepended && letters[0]?.character !== replacement ? prepended(letters, replacement) : letters;
  }

  /** Ranges by BERT's words; undefined where words are cut differently. */
  #bertSpans(text: string, tokens: readonly Spelled[]): Span[] | undefined {
    const { continuation } = { continuation: undefined, ...this.#spelling };
    if (this.#asBert === undefined || continuation === undefined) return undefined;
    return bertSpans(text, tokens, this.#asBert, { specials: this.#specials, continuation });
  }

  /** Whether a character by itself would be a token, or a word. */
  #isKnown(character: string): boolean {
    if (this.#spelling.kind === "letters" && this.#spelling.continuation !== undefined)
      return /[!-/:-@[-`{-~\p{P}\p{Script=Han}]/u.test(character);
    return this.#engine.idOf(character) !== undefined;
  }

  decode(tokens: Iterable<number>): string {
    const runs: string[] = [];
    let known: number[] = [];
    const flush = () => {
      if (known.length > 0) runs.push(this.#engine.decode(known));
      known = [];
    };
    for (const token of tokens) {
      if (this.#engine.tokenOf(token) !== undefined) {
        known.push(token);
        continue;
      }
      flush();
      runs.push("\uFFFD");
    }
    flush();
    return runs.join("");
  }

  /**
   * Corrects the engine for BERT's words: it separates only Chinese characters of the first plane, and lowercases a
   * final sigma differently from tokenizers that lowercase character by character.
   */
  #prepared(text: string): string {
    if (this.#asBert === undefined) return text;
    const { handle_chinese_chars: spaced, lowercase } = this.#asBert;
    const apart = spaced === false ? text : text.replace(farIdeographs, " $& ");
    return lowercase === false ? apart : apart.replaceAll("Σ", "σ");
  }
}

/** Chinese characters beyond U+FFFF, by the ranges of BERT's own tokenizer. */
const farIdeographs =
  /[\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\u{2F800}-\u{2FA1F}]/gu;

/** Settings for an engine that gets one piece at a time. */
const singlePieces = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };

function spellingOf(json: TokenizerJson, prefixSpace: boolean): Spelling {
  const { model, pre_tokenizer, post_processor } = json;
  if (pre_tokenizer?.type === "ByteLevel")
    return { kind: "bytes", prefixSpace, trimmed: post_processor?.trim_offsets === true };
  const isWordPiece = model.type === "WordPiece";
  return {
    kind: "letters",
    continuation: isWordPiece ? (model.continuing_subword_prefix ?? "##") : undefined,
  };
}

/** Whether text is split like GPT-2's, so that pieces are independent of each other. */
function splitsLikeGpt2({ model, normalizer, pre_tokenizer: split }: TokenizerJson): boolean {
  return (
    (model.type ?? "BPE") === "BPE" &&
    normalizer === null &&
    split?.type === "ByteLevel" &&
    split.use_regex !== false
  );
}
