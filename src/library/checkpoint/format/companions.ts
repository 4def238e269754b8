import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileErrors, fileFailure } from "../../../errors/index.ts";
import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";

/**
 * Files of a model folder besides its weights and configs that other programs read, by name: tokenizer, special tokens,
 * chat template, preprocessor. Plain data.
 */
export type Companions = Readonly<Record<string, Uint8Array>>;

/** Files that define how text becomes tokens; valid for one vocabulary only. */
const ofTokenizer =
  /^(tokenizer(_config)?|special_tokens_map|added_tokens|vocab|normalizer)\.json$|^vocab\.(txt|bpe)$|^merges\.txt$|^chat_template\.(jinja|json)$|^([\w.-]*(spiece|bpe|tokenizer)\.model|(source|target)\.spm)$/;

const others = /^(preprocessor|processor|image_processor|feature_extractor|video_preprocessor)_config\.json$/;

/** Whether a folder's file of that name is copied with every model that begins from the folder. */
export function isCompanion(name: string): boolean {
  return ofTokenizer.test(name) || others.test(name);
}

/**
 * Reads the companions of a model folder.
 * @throws {TroupeError} `HUGGING_FACE_FOLDER` for a file that cannot be read, see `readBounded`
 */
export async function readCompanions(folder: string): Promise<Companions> {
  const names = (await readdir(folder)).filter(isCompanion).toSorted();
  const read = names.map(async (name) => [name, await readCompanion(join(folder, name))] as const);
  return Object.fromEntries(await Promise.all(read));
}

/** Companions for a model with another vocabulary: all except the tokenizer's files. */
export function withoutTokenizer(companions: Companions): Companions {
  return Object.fromEntries(Object.entries(companions).filter(([name]) => !ofTokenizer.test(name)));
}

async function readCompanion(path: string): Promise<Uint8Array> {
  try {
    return await readBounded(path, maxFileBytes.tokenizer);
  } catch (cause) {
    throw unreadable(path, "a readable file", fileFailure(cause), { cause });
  }
}

const unreadable = fileErrors("HUGGING_FACE_FOLDER", "hugging face", undefined, "at");
