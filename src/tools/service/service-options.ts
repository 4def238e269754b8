import { type NamesOf, refuseUnknown, TroupeError } from "../../errors/index.ts";
import type { WriterInit } from "./writer.ts";

/** How a service saves. Give exactly one of `dir` and `storage`. */
export interface CheckpointServiceOptions {
  /** A folder; created if missing. */
  readonly dir?: string;
  /** Another storage, by its address: `s3://BUCKET/PREFIX`. */
  readonly storage?: string;
  /** How many of the newest checkpoints to keep. Default: all. */
  readonly keepLast?: number;
  /** Also keep checkpoints whose step is a multiple of this; requires `keepLast`. */
  readonly keepEvery?: number;
  /** Maximum memory for tensors that wait to be written, in bytes, allocated when needed. Default: 4 GiB. */
  readonly stagingBytes?: number;
  /** Whether a save waits for one that is running, its tensors copied within `stagingBytes`, or is skipped. Default: "wait". */
  readonly whenBusy?: "wait" | "skip";
  /** Whether each checkpoint is read back, byte for byte, before it counts as saved. Default: true. */
  readonly verify?: boolean;
  /** How long one save may take before it fails and its memory is lost. Default: an hour. */
  readonly saveDeadlineMs?: number;
}

// biome-ignore format: a list
const NAMES: NamesOf<CheckpointServiceOptions> = {
  dir: true, storage: true, keepLast: true, keepEvery: true, stagingBytes: true, whenBusy: true,
  verify: true, saveDeadlineMs: true,
};

const defaultStagingBytes = 4 * 2 ** 30;
const defaultDeadlineMs = 3_600_000;

/** Checked options, with defaults. */
export interface ServiceSettings
  extends Required<Omit<CheckpointServiceOptions, "dir" | "storage" | "keepLast" | "keepEvery">> {
  readonly location: string;
  readonly keep: WriterInit["keep"];
}

/** @throws {TroupeError} `OPTION` naming the option */
export function settle(options: CheckpointServiceOptions): ServiceSettings {
  refuseUnknown("OPTION", "checkpoint service", options, NAMES);
  const { dir, storage, keepLast, keepEvery, whenBusy = "wait", verify = true } = options;
  const { stagingBytes = defaultStagingBytes, saveDeadlineMs = defaultDeadlineMs } = options;
  const location = dir ?? storage;
  if (location === undefined || (dir !== undefined && storage !== undefined))
    throw wrongOption("dir or storage", "exactly one of them", dir === undefined ? "none" : "both");
  for (const [name, count] of Object.entries({ keepLast, keepEvery, stagingBytes })) {
    if (count !== undefined && !(Number.isSafeInteger(count) && count >= 1))
      throw wrongOption(name, "at least 1", count);
  }
  if (whenBusy !== "wait" && whenBusy !== "skip") throw wrongOption("whenBusy", "wait or skip", whenBusy);
  if (!(saveDeadlineMs > 0)) throw wrongOption("saveDeadlineMs", "positive", saveDeadlineMs);
  if (keepEvery !== undefined && keepLast === undefined)
    throw wrongOption("keepEvery", "given together with keepLast", keepEvery);
  const keep =
    keepLast === undefined ? undefined : { last: keepLast, ...(keepEvery && { every: keepEvery }) };
  return { location, keep, stagingBytes, whenBusy, verify, saveDeadlineMs };
}

/** The error for an option that is out of range. */
export function wrongOption(name: string, expected: string, got: unknown): TroupeError {
  return new TroupeError("OPTION", {
    where: "checkpoint service",
    expected: `${name} to be ${expected}`,
    got: String(got),
    fields: { option: name },
  });
}
