import { accessSync, constants } from "node:fs";
import { resolve } from "node:path";
import type { NamesOf } from "../errors.ts";
import type { Recompute, ZeroLevel } from "../parallel/index.ts";
import type { OffloadSettings } from "../protocols/index.ts";
import { optionError, refuseUnknown } from "./option-error.ts";

/** What is kept outside the ranks' shards, and where. */
export interface OffloadOptions {
  /**
   * Who keeps the optimizer's state and updates it: an actor of its own a rank, in its memory ("host") or in a file
   * ("nvme").
   */
  readonly optimizer?: "host" | "nvme";
  /** How much of the optimizer's state, from 0 to 1; by whole blocks, the last ones first. 1 */
  readonly ratio?: number;
  /**
   * Where recomputed blocks keep their inputs between forward and backward: in files ("nvme"). In memory is where they
   * are anyway.
   */
  readonly activations?: "nvme";
  /**
   * Where the parameters of blocks at ZeRO level 3 are between their uses: in files ("nvme"). In memory is where they are
   * anyway.
   */
  readonly parameters?: "nvme";
  /** A folder on the disk that is to hold what goes into files. Nothing is ever seen in it, and nothing is left. */
  readonly dir?: string;
}

/** Delays on purpose, to see what is hidden behind the computation: what a slower disk or link would cost. */
export interface SlowdownOptions {
  /** Each offloaded update, in milliseconds. 0 */
  readonly updateMs?: number;
  /** Each reduction of a block's gradient, in milliseconds. 0 */
  readonly reduceMs?: number;
  /** Each way of a block's offloaded parameters from the file or into it, in milliseconds. 0 */
  readonly transferMs?: number;
}

/**
 * Checks what is to be offloaded.
 * @throws {TroupeError} `OPTION`
 */
export function settleOffload(options: {
  readonly offload?: OffloadOptions;
  readonly recompute?: Recompute;
  readonly zero: ZeroLevel;
}): OffloadSettings {
  const { offload, recompute = false } = options;
  if (offload === undefined) return { optimizer: undefined, activations: undefined, parameters: undefined };
  const { optimizer, ratio, activations, parameters, dir } = offload;
  refuseUnknown("offload", offload, NAMES);
  if (optimizer === undefined && activations === undefined && parameters === undefined) {
    const given = Object.keys(offload).join(", ");
    throw optionError("offload.optimizer", CHOICES, optimizer, `${given || "offload"} alone says nothing`);
  }
  if (optimizer !== undefined && optimizer !== "host" && optimizer !== "nvme") {
    throw optionError("offload.optimizer", CHOICES, optimizer);
  }
  if (ratio !== undefined && optimizer === undefined) {
    throw optionError("offload.ratio", "left out where the optimizer's state stays", ratio);
  }
  if (!((ratio ?? 1) >= 0 && (ratio ?? 1) <= 1))
    throw optionError("offload.ratio", "a share from 0 to 1", ratio);
  checkActivations(activations, recompute);
  checkParameters(parameters, options.zero);
  const usesFiles = optimizer === "nvme" || activations !== undefined || parameters !== undefined;
  if (!usesFiles && dir !== undefined) {
    throw optionError("offload.dir", "left out where nothing goes into files", dir);
  }
  const directory = usesFiles ? directoryAt(dir) : "";
  const home = optimizer === "nvme" ? { kind: optimizer, directory } : { kind: "host" as const };
  return {
    optimizer: optimizer && { home, ratio: ratio ?? 1 },
    activations: activations && { directory },
    parameters: parameters && { directory },
  };
}

const NAMES: NamesOf<OffloadOptions> = {
  optimizer: true,
  ratio: true,
  activations: true,
  parameters: true,
  dir: true,
};

const CHOICES = "host or nvme";

/** What ranks compute with lies in the host's memory already: only a file takes any of it off. */
function checkIsFile(option: string, place: unknown): void {
  if (place === "nvme") return;
  const advice = place === "host" ? "on this device they are in the host's memory anyway" : undefined;
  throw optionError(option, "nvme", place, advice);
}

function checkActivations(activations: unknown, recompute: Recompute): void {
  if (activations === undefined) return;
  checkIsFile("offload.activations", activations);
  if (recompute === true) return;
  const advice = "what blocks compute inside would stay in memory, which is by far the most";
  throw optionError("recompute", "true where activations are offloaded", recompute, advice);
}

function checkParameters(parameters: unknown, zero: ZeroLevel): void {
  if (parameters === undefined) return;
  checkIsFile("offload.parameters", parameters);
  if (zero === 3) return;
  const advice = "below it a step needs all of them from its beginning to its end";
  throw optionError("zero", "3 where parameters are offloaded", zero, advice);
}

const DELAYS: NamesOf<SlowdownOptions> = { updateMs: true, reduceMs: true, transferMs: true };

/** @throws {TroupeError} `OPTION` */
export function settleSlowdown(given: SlowdownOptions): Required<SlowdownOptions> {
  refuseUnknown("slowdown", given, DELAYS);
  const { updateMs = 0, reduceMs = 0, transferMs = 0 } = given;
  for (const [name, value] of Object.entries({ updateMs, reduceMs, transferMs })) {
    if (!(value >= 0 && value < Infinity)) throw optionError(`slowdown.${name}`, "≥ 0", value);
  }
  return { updateMs, reduceMs, transferMs };
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
