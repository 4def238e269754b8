import { accessSync, constants } from "node:fs";
import { resolve } from "node:path";
import type { OffloadSettings } from "../actors/index.ts";
import { optionError } from "./option-error.ts";

/** What is kept outside the ranks' shards, and where. */
export interface OffloadOptions {
  /**
   * Who keeps the optimizer's state and updates it: an actor of its own a rank, in its memory ("host") or in a file
   * ("nvme").
   */
  readonly optimizer?: "host" | "nvme";
  /** How much of the optimizer's state, from 0 to 1; by whole blocks, the last ones first. 1 */
  readonly ratio?: number;
  /** A folder on the disk that is to hold what goes into files. Nothing is ever seen in it, and nothing is left. */
  readonly dir?: string;
}

/** Delays on purpose, to see what is hidden behind the computation: what a slower disk or link would cost. */
export interface SlowdownOptions {
  /** Each offloaded update, in milliseconds. 0 */
  readonly updateMs?: number;
  /** Each reduction of a block's gradient, in milliseconds. 0 */
  readonly reduceMs?: number;
}

/**
 * Checks what is to be offloaded.
 * @returns undefined where nothing is
 * @throws {TroupeError} `OPTION`
 */
export function settleOffload(options: OffloadOptions | undefined): OffloadSettings | undefined {
  if (options === undefined) return undefined;
  const { optimizer, ratio = 1, dir } = options;
  if (optimizer === undefined) {
    const given = Object.keys(options).join(", ");
    throw optionError(
      "offload.optimizer",
      "host or nvme",
      optimizer,
      `${given || "offload"} alone says nothing`,
    );
  }
  if (optimizer !== "host" && optimizer !== "nvme") {
    throw optionError("offload.optimizer", "host or nvme", optimizer);
  }
  if (!(ratio >= 0 && ratio <= 1)) throw optionError("offload.ratio", "a share from 0 to 1", ratio);
  if (optimizer === "host") {
    if (dir !== undefined) throw optionError("offload.dir", "left out where nothing goes into files", dir);
    return { home: { kind: "host" }, ratio };
  }
  return { home: { kind: "nvme", directory: directoryAt(dir) }, ratio };
}

/** @throws {TroupeError} `OPTION` */
export function settleSlowdown({ updateMs = 0, reduceMs = 0 }: SlowdownOptions): Required<SlowdownOptions> {
  for (const [name, value] of Object.entries({ updateMs, reduceMs })) {
    if (!(value >= 0 && value < Infinity)) throw optionError(`slowdown.${name}`, "≥ 0", value);
  }
  return { updateMs, reduceMs };
}

function directoryAt(dir: string | undefined): string {
  const advice = "a folder on a fast local disk";
  if (dir === undefined) throw optionError("offload.dir", "given with nvme", dir, advice);
  try {
    accessSync(dir, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw optionError("offload.dir", "a folder that can be written", dir, (error as Error).message);
  }
  return resolve(dir);
}
