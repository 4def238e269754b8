import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileFailure } from "../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { adapterConfigName, type JsonObject, parseJsonObject } from "../../library/checkpoint/index.ts";
import { usage } from "./flags.ts";

/** The folder of the model that an adapter was tuned from. @throws {TroupeError} `USAGE` if it is not there */
export function baseOf(adapter: string): string {
  const file = join(adapter, adapterConfigName);
  const { base_model_name_or_path: base } = adapterConfigOf(file);
  if (typeof base === "string" && existsSync(base)) return base;
  throw usage("the folder of the model that was tuned", `${base} in ${file}`, "--base names it");
}

function adapterConfigOf(file: string): JsonObject {
  let text: string;
  try {
    text = readBoundedTextSync(file, maxFileBytes.config);
  } catch (cause) {
    throw usage(
      "the config of an adapter",
      `${file}: ${fileFailure(cause)}`,
      "--base names the model's folder",
    );
  }
  return parseJsonObject(text, file);
}
