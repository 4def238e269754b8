import { extname } from "node:path";
import { parse, TomlError } from "smol-toml";
import type * as z from "zod";
import { fileFailure, isPlain, TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { type Given, leavesOf } from "./layers.ts";
import { type Option, optionsOf } from "./option.ts";
import { readText } from "./texts.ts";

/**
 * Reads an options file: JSON if its name ends in .json, else TOML. Keys are the names used in scripts, tables are subjects;
 * sizes may be texts such as "64MB".
 * @throws {TroupeError} `CONFIG_FILE` if it cannot be read or parsed
 */
export function fileOptions(path: string, schema: z.core.$ZodType): Given[] {
  const values = parsed(path, readable(path));
  const options = new Map(optionsOf(schema).map((option) => [option.name, option]));
  return [...leavesOf(values)].map(({ path: name, value }) => ({
    path: name,
    value: sized(options.get(name.join(".")), value),
    origin: "file",
    by: path,
  }));
}

function readable(path: string): string {
  try {
    return readBoundedTextSync(path, maxFileBytes.settings);
  } catch (cause) {
    throw fileError("a file of options that can be read", path, cause);
  }
}

function parsed(path: string, text: string): Record<string, unknown> {
  const isJson = extname(path) === ".json";
  let values: unknown;
  try {
    values = isJson ? parseBoundedJson(text) : parse(text);
  } catch (cause) {
    throw fileError(isJson ? "JSON" : "TOML", path, cause);
  }
  if (isPlain(values)) return values;
  throw fileError("an object of options", path, new Error(JSON.stringify(values)));
}

function fileError(expected: string, path: string, cause: unknown): TroupeError {
  return new TroupeError("CONFIG_FILE", {
    where: "config",
    expected: `${expected} in ${path}`,
    got: complaint(cause),
    hint: whichPathWasMeant(path),
    fields: { path },
    cause,
  });
}

function complaint(cause: unknown): string {
  if (cause instanceof TomlError) {
    const [first = ""] = cause.message.replace(/^Invalid TOML document: /, "").split("\n");
    return `${first} (line ${cause.line}, column ${cause.column})`;
  }
  return fileFailure(cause);
}

function sized(option: Option | undefined, value: unknown): unknown {
  return option?.unit === "bytes" && typeof value === "string" ? readText(option, value) : value;
}
