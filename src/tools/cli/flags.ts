import type { Command } from "commander";
import { fileFailure, TroupeError } from "../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { bytesOf } from "../../job/options/index.ts";
import { type JsonObject, parseJsonObject } from "../../library/checkpoint/index.ts";

/** Reads a flag's value as a number. @throws {TroupeError} `USAGE` */
export function number(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw usage("a number", JSON.stringify(text), "see troupe --help");
}

/** Reads `80GB`, `512 MiB` or a plain number as bytes. @throws {TroupeError} `USAGE` */
export function bytes(text: string): number {
  const size = bytesOf(text);
  if (size !== undefined && Number.isFinite(size)) return size;
  throw usage("a size such as 80GB", JSON.stringify(text), "units are B, KB, MB, GB, TB and KiB to TiB");
}

/**
 * Makes a reader of a repeatable flag with pairs.
 * @param flags - the flag as written, `--flag <key=value>`
 * @returns adds one pair to those before it; throws {TroupeError} `USAGE`
 */
export function pair(flags: string, example: string) {
  const expected = flags.replaceAll(/[<>]/g, "").replace(/ .*/, (value) => value.toUpperCase());
  return (text: string, pairs: Record<string, string> = {}): Record<string, string> => {
    const equals = text.indexOf("=");
    if (equals < 1) throw usage(expected, JSON.stringify(text), `for instance ${example}`);
    return { ...pairs, [text.slice(0, equals)]: text.slice(equals + 1) };
  };
}

/** Reads one setting of a job and adds it to those before it. @throws {TroupeError} `USAGE` */
export const setting = pair("--set <key=value>", "--set layers=6");

/** Writes a word so that a shell reads it as one. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The error for wrong arguments. */
export function usage(expected: string, got: string, advice: string): TroupeError {
  return new TroupeError("USAGE", { where: "troupe", expected, got, hint: advice });
}

/** Reads a model's config file. @throws {TroupeError} `USAGE` with what was expected if it cannot be read */
export function readConfig(path: string, expected: string, advice: string): JsonObject {
  let text: string;
  try {
    text = readBoundedTextSync(path, maxFileBytes.config);
  } catch (cause) {
    throw usage(expected, `${path}: ${fileFailure(cause)}`, advice);
  }
  return parseJsonObject(text, path);
}

const FULL_ERRORS = "printsFullErrors";

/** Lets the command line print its last error with all details. */
export function printFullErrors(command: Command): void {
  rootOf(command).setOptionValue(FULL_ERRORS, true);
}

/** Whether {@link printFullErrors} was called. */
export function printsFullErrors(command: Command): boolean {
  return rootOf(command).getOptionValue(FULL_ERRORS) === true;
}

const rootOf = (command: Command): Command => (command.parent === null ? command : rootOf(command.parent));

let unprinted: NodeJS.ErrnoException | undefined;

/** Writes a line to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`, (error) => {
    // A reader that closed the pipe has read enough.
    if (error && (error as NodeJS.ErrnoException).code !== "EPIPE") unprinted ??= error;
  });
}

/** Checks that everything was printed. @throws {TroupeError} `OUTPUT_LOST` if some was not, as on a full disk */
export async function checkPrinted(): Promise<void> {
  // The stream reports it a turn later.
  await new Promise((resolve) => setImmediate(resolve));
  if (unprinted === undefined) return;
  throw new TroupeError("OUTPUT_LOST", {
    where: "troupe",
    expected: "standard output to take what was asked for",
    got: unprinted.message,
    hint: "everything else is done",
  });
}
