import { dirname, extname, resolve } from "node:path";
import { parse } from "smol-toml";
import { fileFailure, TroupeError } from "../../errors/index.ts";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../errors/untrusted/index.ts";

/** The user's own names for models and datasets. */
export interface Registry {
  /** The registry's file. */
  readonly file: string;
  /** Folders, by name. */
  readonly models: Readonly<Record<string, string>>;
  /** Files, folders or prefixes of indexed data, by name; a part of a dataset is `name/part`. */
  readonly data: Readonly<Record<string, string>>;
}

/** The variable that names a registry; without it, this file in the working directory. */
export const registryVariable = "TROUPE_HUB";
const registryFile = "troupe-hub.toml";

/**
 * Reads the registry of a working directory; undefined where there is none.
 *
 * ```toml
 * [models]
 * bert-base-cased = "models/bert-base-cased"    # from the file's own folder
 * [data]
 * "glue/mrpc" = "data/mrpc"
 * ```
 * @throws {TroupeError} `HUB` for a named file that does not exist, or an invalid registry
 */
export function findRegistry(
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
): Registry | undefined {
  const named = environment[registryVariable];
  const file = resolve(folder, named ?? registryFile);
  let text: string;
  try {
    text = readBoundedTextSync(file, maxFileBytes.settings);
  } catch (cause) {
    if (named === undefined) return undefined;
    throw broken(file, fileFailure(cause), cause);
  }
  return registryOf(file, text);
}

function registryOf(file: string, text: string): Registry {
  let values: Record<string, unknown>;
  try {
    values = (extname(file) === ".json" ? parseBoundedJson(text) : parse(text)) as Record<string, unknown>;
  } catch (cause) {
    throw broken(file, (cause as Error).message.split("\n")[0] ?? "", cause);
  }
  const { models, data, ...others } = values;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw broken(file, unknown);
  return { file, models: placesIn(file, models), data: placesIn(file, data) };
}

function placesIn(file: string, names: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries((names ?? {}) as Record<string, unknown>).map(([name, place]) => {
      if (typeof place !== "string") throw broken(file, `${name} = ${JSON.stringify(place)}`);
      return [name, resolve(dirname(file), place)];
    }),
  );
}

function broken(file: string, got: string, cause?: unknown): TroupeError {
  return new TroupeError("HUB", {
    where: "hub",
    expected: `tables [models] and [data] of names and places in ${file}`,
    got,
    hint: 'such as bert-base-cased = "models/bert"',
    fields: { file },
    ...(cause !== undefined && { cause }),
  });
}
