import { type NamesOf, TroupeError, unknownNames } from "../errors.ts";
import type { WriterInit } from "./writer.ts";

/** How a service saves. Exactly one of `dir` and `storage` says where. */
export interface CheckpointServiceOptions {
  /** A folder; made where it is not there. */
  readonly dir?: string;
  /** Another storage, by its address: `s3://BUCKET/PREFIX`. */
  readonly storage?: string;
  /** Keep that many of the newest checkpoints; all where neither rule is given. */
  readonly keepLast?: number;
  /** Keep those whose step is a multiple of this, too. */
  readonly keepEvery?: number;
  /** The most memory in which tensors wait for the disk, in bytes: 4 GiB by default. Taken when it is needed. */
  readonly stagingBytes?: number;
  /**
   * What becomes of a save while another is being written: it waits, its tensors copied, as far as `stagingBytes` allows;
   * or it is skipped and counted.
   */
  readonly whenBusy?: "wait" | "skip";
  /** Whether each checkpoint is read again, byte for byte, before it counts as saved; true by default. */
  readonly verify?: boolean;
  /** How long one save may take before it counts as failed, its memory lost; an hour by default. */
  readonly saveDeadlineMs?: number;
}

const NAMES: NamesOf<CheckpointServiceOptions> = {
  dir: true,
  storage: true,
  keepLast: true,
  keepEvery: true,
  stagingBytes: true,
  whenBusy: true,
  verify: true,
  saveDeadlineMs: true,
};

const defaultStagingBytes = 4 * 2 ** 30;
const defaultDeadlineMs = 3_600_000;

/** The same, checked, with nothing left out. */
export interface ServiceSettings {
  readonly location: string;
  readonly keep: WriterInit["keep"];
  readonly stagingBytes: number;
  readonly whenBusy: "wait" | "skip";
  readonly verify: boolean;
  readonly saveDeadlineMs: number;
}

/** @throws {TroupeError} `OPTION` naming the option */
export function settle(options: CheckpointServiceOptions): ServiceSettings {
  const unknown = unknownNames(options, NAMES);
  if (unknown !== undefined) {
    throw new TroupeError(
      "OPTION",
      { where: "checkpoint service", expected: unknown.expected, got: unknown.got, hint: unknown.hint },
      { fields: { option: unknown.got } },
    );
  }
  const { dir, storage, keepLast, keepEvery, whenBusy = "wait", verify = true } = options;
  const { stagingBytes = defaultStagingBytes, saveDeadlineMs = defaultDeadlineMs } = options;
  const location = dir ?? storage;
  if (location === undefined || (dir !== undefined && storage !== undefined)) {
    throw wrongOption("dir or storage", "exactly one of them", dir === undefined ? "none" : "both");
  }
  for (const [name, count] of Object.entries({ keepLast, keepEvery, stagingBytes })) {
    if (count !== undefined && !(Number.isSafeInteger(count) && count >= 1))
      throw wrongOption(name, "at least 1", count);
  }
  if (whenBusy !== "wait" && whenBusy !== "skip") throw wrongOption("whenBusy", "wait or skip", whenBusy);
  if (!(saveDeadlineMs > 0)) throw wrongOption("saveDeadlineMs", "positive", saveDeadlineMs);
  if (keepEvery !== undefined && keepLast === undefined) {
    throw wrongOption("keepEvery", "given together with keepLast", keepEvery);
  }
  const keep =
    keepLast === undefined
      ? undefined
      : { last: keepLast, ...(keepEvery === undefined ? {} : { every: keepEvery }) };
  return { location, keep, stagingBytes, whenBusy, verify, saveDeadlineMs };
}

/** An option that is out of its range. */
export function wrongOption(name: string, expected: string, got: unknown): TroupeError {
  return new TroupeError(
    "OPTION",
    { where: "checkpoint service", expected: `${name} to be ${expected}`, got: String(got) },
    {
      fields: { option: name },
    },
  );
}
