import { join } from "node:path";
import { fileErrors, fileFailure, TroupeError, whichPathWasMeant } from "../../../errors/index.ts";
import {
  fileStatus,
  isThere,
  maxFileBytes,
  parseBoundedJson,
  readBoundedText,
} from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";
import { CharacterTokenizer } from "./character.ts";
import { HuggingFaceTokenizer } from "./hugging-face.ts";
import type { Tokenizer, TokenizerSpec } from "./tokenizer.ts";
import { loadWordPiece } from "./word-piece.ts";

const endOfText = "<|endoftext|>";

const bertSpecials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/** Creates the tokenizer that `spec` describes. @throws {TroupeError} `TOKENIZER_INVALID` for an invalid spec */
export function tokenizerFromSpec(spec: TokenizerSpec): Tokenizer {
  switch (spec.kind) {
    case "byte":
      return new ByteTokenizer();
    case "character":
      return new CharacterTokenizer(spec.characters);
    case "hugging-face":
      return new HuggingFaceTokenizer(spec.tokenizer);
    default:
      throw new TroupeError("TOKENIZER_INVALID", {
        where: "tokenizer",
        expected: 'kind "byte", "character" or "hugging-face"',
        got: JSON.stringify(spec satisfies never),
      });
  }
}

/**
 * Loads a tokenizer in one of Hugging Face's formats.
 * @param path - a `tokenizer.json`, or a folder that has one, or GPT-2's `vocab.json` and `merges.txt`, or BERT's
 * `vocab.txt`, which is lowercase, without accents and with each Chinese character a word, unless its `tokenizer_config.json` says otherwise
 * @throws {TroupeError} `TOKENIZER_INVALID` where there is none of these
 */
export async function loadTokenizer(path: string): Promise<Tokenizer> {
  if (!fileStatus(path)?.isDirectory()) return new HuggingFaceTokenizer(await readJson(path));
  if (await isThere(join(path, "tokenizer.json"))) return loadTokenizer(join(path, "tokenizer.json"));
  if (await isThere(join(path, "vocab.txt"))) return loadBertTokenizer(path);
  return loadGpt2Tokenizer({ vocabPath: join(path, "vocab.json"), mergesPath: join(path, "merges.txt") });
}

async function loadBertTokenizer(folder: string): Promise<Tokenizer> {
  const settings = join(folder, "tokenizer_config.json");
  const {
    do_lower_case: lowercase = true,
    strip_accents: stripAccents,
    tokenize_chinese_chars: separatesChinese,
  } = (await isThere(settings)) ? await readJson(settings) : {};
  return loadWordPiece(join(folder, "vocab.txt"), {
    lowercase: lowercase === true,
    stripAccents: typeof stripAccents === "boolean" ? stripAccents : undefined,
    separatesChinese: separatesChinese !== false,
    specials: bertSpecials,
  });
}

/**
 * Loads GPT-2's byte-level BPE from its two published files. `<|endoftext|>` in a text is one token.
 * @param files - `vocab.json`, token to id, and `merges.txt`, one pair per line, most frequent first
 * @throws {TroupeError} `TOKENIZER_INVALID` when a file is missing or malformed
 */
export async function loadGpt2Tokenizer(files: {
  vocabPath: string;
  mergesPath: string;
}): Promise<Tokenizer> {
  const vocab = await readJson(files.vocabPath);
  const lines = (await readText(files.mergesPath)).split("\n");
  const merges = lines.filter((line, index) => line !== "" && !(index === 0 && line.startsWith("#version")));
  const malformed = merges.find((line) => line.split(" ").length !== 2);
  if (malformed !== undefined)
    throw new TroupeError("TOKENIZER_INVALID", {
      where: "tokenizer",
      expected: `two symbols a line in ${files.mergesPath}`,
      got: JSON.stringify(malformed.slice(0, 80)),
    });
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  return new HuggingFaceTokenizer({
    version: "1.0",
    added_tokens: endOfText in vocab ? [{ id: vocab[endOfText], content: endOfText, special: true }] : [],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: { type: "BPE", vocab, merges },
  });
}

async function readJson(path: string): Promise<Record<string, unknown>> {
  const text = await readText(path);
  try {
    return parseBoundedJson(text) as Record<string, unknown>;
  } catch (cause) {
    throw invalid(path, "JSON", (cause as Error).message, { cause });
  }
}

const invalid = fileErrors("TOKENIZER_INVALID", "tokenizer");

async function readText(path: string): Promise<string> {
  noteFile(path, { isHashed: true });
  try {
    return await readBoundedText(path, maxFileBytes.tokenizer);
  } catch (cause) {
    throw new TroupeError("TOKENIZER_INVALID", {
      where: "tokenizer",
      expected: `a readable file at ${path}`,
      got: fileFailure(cause),
      hint:
        whichPathWasMeant(path) ??
        "give a tokenizer.json, or a folder with tokenizer.json or with vocab.json and merges.txt",
      fields: { path },
      cause,
    });
  }
}

/** Tokens are the 256 byte values of the UTF-8 text: needs no vocabulary and knows every file. */
export class ByteTokenizer implements Tokenizer {
  readonly vocabSize = 256;
  readonly spec = { kind: "byte" } as const;
  readonly legalCuts = "between-characters";

  encode(text: string): Uint8Array {
    return new TextEncoder().encode(text);
  }

  decode(tokens: Iterable<number>): string {
    // 0xff never occurs in UTF-8, so a foreign token becomes one replacement character.
    const bytes = Uint8Array.from(tokens, (token) => (token < 256 ? token : 0xff));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }
}
