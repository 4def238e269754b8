import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileFailure, TroupeError } from "../../errors/index.ts";
import { maxFileBytes, readBoundedText } from "../../errors/untrusted/index.ts";
import { type JsonObject, parseJsonObject } from "../checkpoint/index.ts";

/**
 * The word in a file that names the latest step of a run; undefined where there is no such file.
 * @throws {TroupeError} `CONVERT` for one that cannot be read or is longer than a word
 */
export async function latestWord(where: string, path: string): Promise<string | undefined> {
  if (!existsSync(path)) return undefined;
  return (await textOf(where, path, maxFileBytes.word)).trim();
}

async function readConfigFile(path: string, where: string): Promise<JsonObject> {
  return parseJsonObject(await textOf(where, path, maxFileBytes.config), path);
}

function textOf(where: string, path: string, maxBytes: number): Promise<string> {
  return readBoundedText(path, maxBytes).catch((cause: unknown) => {
    throw unusable(where, path, "a readable file", fileFailure(cause));
  });
}

function unusable(where: string, path: string, expected: string, got: string): TroupeError {
  return new TroupeError("CONVERT", { where, expected: `${expected} at ${path}`, got }, { fields: { path } });
}

/**
 * The Hugging Face `config.json` of a model whose own files keep none: the first that lies in one of the folders.
 * @param where - whose files they are
 * @throws {TroupeError} `CONVERT` where there is none
 */
export async function findConfig(where: string, folders: readonly string[]): Promise<JsonObject> {
  for (const folder of folders) {
    const path = join(folder, "config.json");
    if (existsSync(path)) return readConfigFile(path, where);
  }
  const [path = ""] = folders;
  throw new TroupeError(
    "CONVERT",
    {
      where,
      expected: `the model's Hugging Face config.json in ${path}`,
      got: "none",
      hint: "its checkpoints keep none: put it there or give --config",
    },
    { fields: { path } },
  );
}
