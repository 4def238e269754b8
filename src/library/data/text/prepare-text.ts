import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileErrors, TroupeError } from "../../../errors/index.ts";
import { cacheFolder } from "../cache-folder.ts";
import { CharacterSet, CharacterTokenizer } from "../tokenizers/character.ts";
import { loadTokenizer, tokenizerFromSpec } from "../tokenizers/load.ts";
import { tokenDType } from "../tokenizers/token-dtype.ts";
import type { Tokenizer, TokenizerSpec } from "../tokenizers/tokenizer.ts";
import { encodeText } from "./encode-text.ts";
import {
  hashText,
  readText,
  refuseBinary,
  resolveText,
  type TextFile,
  type TextSource,
} from "./text-source.ts";
import { type TokenFile, type TokenFileNote, verifiedNote, writeNote, writeTokens } from "./token-file.ts";

/**
 * The tokenizer of a text: `"byte"`, `"character"` (its vocabulary is the text's own characters), the path of a Hugging
 * Face tokenizer, or one described as data, for instance by a checkpoint.
 */
export type TokenizerChoice = string | TokenizerSpec;

/** Options of `prepareText`. */
export interface TextOptions {
  readonly source: TextSource;
  readonly tokenizer: TokenizerChoice;
  /** Folder for encoded texts. Default: `$TROUPE_CACHE`, else `troupe` in the user's cache folder. */
  readonly cacheDir?: string;
}

/** A text as tokens on the disk, with its tokenizer. Plain data. */
export interface PreparedText {
  readonly tokens: TokenFile;
  readonly tokenizer: TokenizerSpec;
  /** Digest of the text's bytes. */
  readonly textSha256: string;
}

/**
 * Encodes a text once: the tokens are stored in the cache folder under a name derived from the text's bytes and the tokenizer, so
 * that the next run only reads the text to recognize it. Several processes may do it at once. A damaged cached file is made
 * again.
 * @throws {TroupeError} errors of `resolveText`, `refuseBinary`, `loadTokenizer` and `Tokenizer.encode`; `DATA_CHANGED` when the
 *   text changes meanwhile; `DATA_CACHE_FAILED` when the cache folder cannot be written, or another user could write to it
 */
export async function prepareText(options: TextOptions): Promise<PreparedText> {
  const files = await resolveText(options.source);
  const source = [options.source].flat().join(", ");
  await refuseBinary(files, source);
  const chosen = await choose(options.tokenizer);
  const textSha256 = await hashText(files);
  const cache = cacheFolder(options.cacheDir, "encoded text");
  const tokensPath = join(cache, `${cacheKey(textSha256, chosen)}.tokens`);
  const note =
    (await verifiedNote(tokensPath)) ?? (await encodeToFile(tokensPath, files, textSha256, chosen));
  const { dtype, numTokens, vocabSize, tokenizer } = note;
  return { tokens: { path: tokensPath, source, dtype, numTokens, vocabSize }, tokenizer, textSha256 };
}

/**
 * Checks that a model knows every token of `tokens`.
 * @param modelVocabSize - rows of the model's token embedding
 * @throws {TroupeError} `DATA_VOCABULARY`
 */
export function checkVocabulary(
  tokens: Pick<TokenFile, "source" | "vocabSize">,
  modelVocabSize: number,
): void {
  if (tokens.vocabSize <= modelVocabSize) return;
  throw new TroupeError("DATA_VOCABULARY", {
    where: "data",
    expected: `the vocabulary of ${tokens.source} to fit the model's ${modelVocabSize} tokens`,
    got: `${tokens.vocabSize}`,
    hint: "raise the model's vocabulary, or use the tokenizer that the model was trained with",
    fields: { vocabSize: tokens.vocabSize, modelVocabSize },
  });
}

/** Loads the chosen tokenizer; undefined for one whose characters are the text's own. */
async function choose(choice: TokenizerChoice): Promise<Tokenizer | undefined> {
  if (choice === "character") return undefined;
  if (choice === "byte") return tokenizerFromSpec({ kind: "byte" });
  return typeof choice === "string" ? loadTokenizer(choice) : tokenizerFromSpec(choice);
}

function cacheKey(textSha256: string, tokenizer: Tokenizer | undefined): string {
  const identity = JSON.stringify({
    formatVersion: 1,
    textSha256,
    tokenizer: tokenizer?.spec ?? "character",
  });
  return createHash("sha256").update(identity).digest("hex").slice(0, 32);
}

async function encodeToFile(
  tokensPath: string,
  files: readonly TextFile[],
  textSha256: string,
  chosen: Tokenizer | undefined,
): Promise<TokenFileNote> {
  const tokenizer = chosen ?? (await characterTokenizer(files));
  try {
    const written = await writeTokens(tokensPath, encodeText(files, tokenizer));
    // The cached file's name must match its content.
    if ((await hashText(files)) !== textSha256) throw changed(files);
    const note: TokenFileNote = {
      formatVersion: 1,
      dtype: tokenDType(tokenizer.vocabSize),
      ...written,
      vocabSize: tokenizer.vocabSize,
      textSizeBytes: files.reduce((sum, file) => sum + file.sizeBytes, 0),
      textSha256,
      tokenizer: tokenizer.spec,
    };
    await writeNote(tokensPath, note);
    return note;
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    throw cacheFailed(tokensPath, "to keep encoded text", code ?? message, { cause });
  }
}

async function characterTokenizer(files: readonly TextFile[]): Promise<Tokenizer> {
  const characters = new CharacterSet();
  for await (const part of readText(files)) characters.add(part);
  return new CharacterTokenizer(characters.toString());
}

function changed(files: readonly TextFile[]): TroupeError {
  const named =
    files.length === 1 ? files[0]?.path : `${files.length} files beginning with ${files[0]?.path}`;
  return new TroupeError("DATA_CHANGED", {
    where: "data",
    expected: `${named} to stay as it is while it is encoded`,
    got: "other bytes",
    hint: "run again once it is complete",
    fields: { path: files[0]?.path },
  });
}

const cacheFailed = fileErrors(
  "DATA_CACHE_FAILED",
  "data",
  "free space there, or set TROUPE_CACHE to another folder",
  "at",
);
