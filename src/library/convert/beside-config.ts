import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileErrors, fileFailure } from "../../errors/index.ts";
import { maxFileBytes, readBoundedText } from "../../errors/untrusted/index.ts";
import { type JsonObject, parseJsonObject } from "../checkpoint/index.ts";

/**
 * Reads the file that names the latest step of a run; undefined if there is none.
 * @throws {TroupeError} `CONVERT` if it cannot be read or is longer than a name
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
    throw fileErrors("CONVERT", where, undefined, "at")(path, "a readable file", fileFailure(cause));
  });
}

/**
 * Finds the Hugging Face `config.json` of a model whose checkpoints have none: the first in one of the folders.
 * @param where - owner of the folders, for the error
 * @throws {TroupeError} `CONVERT` if there is none
 */
export async function findConfig(where: string, folders: readonly string[]): Promise<JsonObject> {
  for (const folder of folders) {
    const path = join(folder, "config.json");
    if (existsSync(path)) return readConfigFile(path, where);
  }
  const [path = ""] = folders;
  const refuse = fileErrors("CONVERT", where, "its checkpoints keep none: put it there or give --config");
  throw refuse(path, "the model's Hugging Face config.json", "none");
}
