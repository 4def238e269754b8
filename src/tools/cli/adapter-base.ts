import { existsSync } from "node:fs";
import { join } from "node:path";
import { adapterConfigName } from "../../library/checkpoint/index.ts";
import { readConfig, usage } from "./flags.ts";

/** The folder of the model that an adapter was tuned from. @throws {TroupeError} `USAGE` if it is not there */
export function baseOf(adapter: string): string {
  const file = join(adapter, adapterConfigName);
  const hint = "--base names the model's folder";
  const { base_model_name_or_path: base } = readConfig(file, "the config of an adapter", hint);
  if (typeof base === "string" && existsSync(base)) return base;
  throw usage("the folder of the model that was tuned", `${base} in ${file}`, "--base names it");
}
