import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type JsonObject, parseJsonObject } from "../checkpoint/index.ts";
import { TroupeError } from "../errors.ts";

/**
 * The Hugging Face `config.json` of a model whose own files keep none: the first that lies in one of the folders.
 * @param where - whose files they are
 * @throws {TroupeError} `CONVERT` where there is none
 */
export async function findConfig(where: string, folders: readonly string[]): Promise<JsonObject> {
  for (const folder of folders) {
    const path = join(folder, "config.json");
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined) return parseJsonObject(text, path);
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
