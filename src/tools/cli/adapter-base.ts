import { existsSync } from "node:fs";
import { join } from "node:path";
import { adapterConfigName } from "../../library/checkpoint/index.ts";
import { readConfig, usage } from "./flags.ts";

/**
 * The folder of the model that an adapter was tuned from; undefined for the folder of a model.
 * @param given - instead of the one that its adapter_config.json names
 * @throws {TroupeError} `USAGE` if it is not there, or is given with the folder of a model
 */
export function baseOf(path: string, given: string | undefined): string | undefined {
  const file = join(path, adapterConfigName);
  const isAdapter = existsSync(file);
  if (!isAdapter && given !== undefined)
    throw usage("--base with an adapter", `it with ${path}`, `that has no ${adapterConfigName}`);
  if (!isAdapter || given !== undefined) return given;
  const hint = "--base names the model's folder";
  const { base_model_name_or_path: base } = readConfig(file, "the config of an adapter", hint);
  if (typeof base === "string" && existsSync(base)) return base;
  throw usage("the folder of the model that was tuned", `${base} in ${file}`, "--base names it");
}
