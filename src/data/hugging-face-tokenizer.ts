import { Tokenizer as Engine } from "@huggingface/tokenizers";
import { TroupeError } from "../errors.ts";
import { Gpt2Pieces } from "./gpt2-pieces.ts";
import { newTokenArray, type TokenArray, tokenDType } from "./token-dtype.ts";
import type { LegalCuts, Tokenizer, TokenizerSpec } from "./tokenizer.ts";

/** The part of a Hugging Face `tokenizer.json` that is read here; the engine reads the rest. */
interface TokenizerJson {
  readonly added_tokens: readonly { content: string; id: number; lstrip?: boolean; rstrip?: boolean }[];
  readonly normalizer: object | null;
  readonly pre_tokenizer: { type: string; add_prefix_space?: boolean; use_regex?: boolean } | null;
  readonly model: { type?: string; vocab: object };
}

/**
 * Any tokenizer that a Hugging Face `tokenizer.json` describes, GPT-2's byte-level BPE first of all, by the package
 * `@huggingface/tokenizers`. Special tokens written in the text are recognised, none is added.
 */
export class HuggingFaceTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly spec: Extract<TokenizerSpec, { kind: "hugging-face" }>;
  readonly legalCuts: LegalCuts;
  readonly #engine: Engine;
  readonly #pieces: Gpt2Pieces | undefined;

  /**
   * @param tokenizer - content of a `tokenizer.json`
   * @throws {TroupeError} `TOKENIZER_INVALID` when the engine refuses it
   */
  constructor(tokenizer: Readonly<Record<string, unknown>>) {
    this.#engine = createEngine(tokenizer);
    this.spec = { kind: "hugging-face", tokenizer };
    this.vocabSize = this.#engine.model?.vocab.length ?? 0;
    const json = tokenizer as unknown as TokenizerJson;
    const specials = json.added_tokens.map((token) => token.content);
    if (splitsLikeGpt2(json)) {
      this.#pieces = new Gpt2Pieces(specials, (text) => this.#encodeWhole(text));
      this.legalCuts = "before-whitespace";
    } else {
      this.legalCuts = "nowhere";
    }
  }

  encode(text: string): TokenArray {
    const ids = this.#pieces?.encode(text) ?? this.#encodeWhole(text);
    const tokens = newTokenArray(tokenDType(this.vocabSize), ids.length);
    tokens.set(ids);
    return tokens;
  }

  decode(tokens: Iterable<number>): string {
    const runs: string[] = [];
    let known: number[] = [];
    const flush = () => {
      if (known.length > 0) runs.push(this.#engine.decode(known, { clean_up_tokenization_spaces: false }));
      known = [];
    };
    for (const token of tokens) {
      if (this.#engine.id_to_token(token) !== undefined) {
        known.push(token);
        continue;
      }
      flush();
      runs.push("\uFFFD");
    }
    flush();
    return runs.join("");
  }

  #encodeWhole(text: string): number[] {
    return this.#engine.encode(text, { add_special_tokens: false }).ids;
  }
}

function createEngine(tokenizer: Readonly<Record<string, unknown>>): Engine {
  const model = tokenizer.model as TokenizerJson["model"] | undefined;
  if (typeof model?.vocab !== "object" || !Array.isArray(tokenizer.added_tokens)) {
    throw new TroupeError("TOKENIZER_INVALID", {
      where: "tokenizer",
      expected: "the content of a tokenizer.json with model.vocab and added_tokens",
      got: "something else",
      hint: "give a tokenizer.json that Hugging Face's tokenizers wrote, or vocab.json with merges.txt",
    });
  }
  try {
    return new Engine(tokenizer, {});
  } catch (cause) {
    throw new TroupeError(
      "TOKENIZER_INVALID",
      {
        where: "tokenizer",
        expected: "a tokenizer.json that @huggingface/tokenizers can run",
        got: `"${(cause as Error).message}"`,
      },
      { cause },
    );
  }
}

/** Whether text is split as by GPT-2, so that pieces are independent and no piece ends in whitespace and goes on. */
function splitsLikeGpt2(json: TokenizerJson): boolean {
  const split = json.pre_tokenizer;
  return (
    (json.model.type ?? "BPE") === "BPE" &&
    json.normalizer === null &&
    split?.type === "ByteLevel" &&
    split.add_prefix_space === false &&
    split.use_regex !== false &&
    json.added_tokens.every((token) => !token.lstrip && !token.rstrip && !/\s/u.test(token.content))
  );
}
