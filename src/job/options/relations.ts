import { accessSync, constants } from "node:fs";
import type * as z from "zod";
import type { runtimeSchema } from "./schema.ts";
import type { Chosen } from "./settings.ts";

/** Options as given, and completed by defaults. */
export interface Choice {
  readonly given: z.input<typeof runtimeSchema>;
  readonly chosen: Chosen;
}

/** A conflict of an option with others: `expected OPTION to be EXPECTED, got GOT (HINT)`. */
export interface Conflict {
  readonly option: string;
  readonly expected: string;
  readonly got: unknown;
  readonly hint?: string;
}

/** A condition that one option puts on others. */
export interface Relation {
  readonly option: string;
  /** For the docs: "needs tp ≥ 2". */
  readonly says: string;
  readonly conflict: (choice: Choice) => Conflict | undefined;
}

/** A relation whose conflicts are about its own option. */
function relation(
  option: string,
  says: string,
  complain: (choice: Choice) => Omit<Conflict, "option"> | false | undefined,
): Relation {
  const conflict = (choice: Choice) => {
    const found = complain(choice);
    return found ? { option, ...found } : undefined;
  };
  return { option, says, conflict };
}

/** A relation that a choice breaks or not; its conflict names the value that was chosen. */
function rule(
  option: string,
  says: string,
  isBroken: (chosen: Chosen) => boolean,
  expected: string,
  hint?: string,
): Relation {
  const got = (chosen: Chosen) =>
    option.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], chosen);
  return relation(
    option,
    says,
    ({ chosen }) => isBroken(chosen) && { expected, got: got(chosen), ...(hint !== undefined && { hint }) },
  );
}

/** Conditions between options that hold for any job. `checkLayout` checks a layout against a model. */
// biome-ignore format: a table, with two lines for most rows
export const relations: readonly Relation[] = [
  relation("sequenceParallel", "needs tp ≥ 2", ({ chosen: { sequenceParallel, tp } }) => {
    const hint = "positions are split over the tp ranks";
    return sequenceParallel && tp < 2 && { expected: "used with tp ≥ 2", got: `tp ${tp}`, hint };
  }),
  rule("chunks", "needs pp ≥ 2", ({ chunks, pp }) => chunks > 1 && pp < 2,
    "used with pp ≥ 2", "only pipeline stages hold several chunks"),
  rule("overlapChunks", "needs sequenceParallel", ({ overlapChunks, sequenceParallel }) => overlapChunks > 1 && !sequenceParallel,
    "used with sequenceParallel", "only gathers and reductions of split positions can overlap"),
  rule("change", "needs resume", ({ change, resume }) => change.length > 0 && resume === undefined,
    "used with resume", "without resume there is no earlier run to differ from"),
  rule("resume", "auto needs checkpoint.dir", ({ resume, checkpoint }) => resume === "auto" && checkpoint?.dir === undefined,
    "used with checkpoint.dir", "auto looks for checkpoints in that folder"),
  relation("hosts.tls", "cert, key and ca go together", ({ given: { hosts } }) => {
    const { cert, key, ca } = hosts?.tls ?? {};
    const files = Object.entries({ cert, key, ca });
    const missing = files.flatMap(([name, file]) => (file === undefined ? name : []));
    if (hosts?.tls === undefined || missing.length === 0) return undefined;
    const got = `none for ${missing.join(" and ")}`;
    return { expected: "given with cert, key and ca", got, hint: "mutual TLS needs all three" };
  }),
  rule("carrier", 'gloo and nccl need placement "process"', ({ carrier, placement }) => carrier !== "auto" && placement !== "process",
    'used with placement "process"', "threads of one process share memory"),
  rule("carrier", "nccl needs a device", ({ carrier, device }) => carrier === "nccl" && device === "cpu",
    "used with a device", "on cpu use gloo"),
  rule("carrier", "gloo and nccl go without offload.parameters",
    ({ carrier, offload }) => carrier !== "auto" && offload?.parameters !== undefined,
    "used without offload.parameters", "with gloo and nccl each rank gathers parameters into its own memory"),
  rule("offload.parameters", "needs device cpu", ({ offload, device }) => offload?.parameters !== undefined && device !== "cpu",
    "left out on a device", "only parameters in host memory can be paged to files"),
  relation(
    "offload.activations",
    "nvme needs device cpu, host another",
    ({ chosen: { offload, device } }) => {
      const got = offload?.activations;
      if (got === undefined || (got === "nvme") === (device === "cpu")) return undefined;
      return device === "cpu"
        ? { expected: "nvme", got, hint: "on this device they already are in the host's memory" }
        : { expected: "host on a device", got, hint: "activations of a device are offloaded to host memory" };
    },
  ),
  rule("invariant", "goes without graph exact or fast", ({ invariant, graph }) => invariant && graph !== "off",
    "used with graph off", "programs do not know rows that are computed on their own"),
  relation("rounding", "stochastic needs weights in bf16 or fp16", ({ chosen: { rounding, precision } }) => {
    const isRounded = precision === "bf16" || precision === "fp16";
    const expected = `nearest with ${precision}, whose weights are not rounded`;
    return rounding === "stochastic" && !isRounded && { expected, got: rounding };
  }),
  relation("offload.optimizer", "or activations or parameters, where offload is given", ({ given }) => {
    const { optimizer, activations, parameters, ...rest } = given.offload ?? { optimizer: "host" };
    if (optimizer !== undefined || activations !== undefined || parameters !== undefined) return undefined;
    const others = Object.keys(rest).join(", ") || "offload";
    return { expected: "host or nvme", got: undefined, hint: `${others} alone offloads nothing` };
  }),
  rule("offload.ratio", "needs offload.optimizer", ({ offload }) => offload?.ratio !== undefined && offload.optimizer === undefined,
    "left out without offload.optimizer"),
  {
    option: "offload.activations",
    says: "needs recompute true",
    conflict: ({ chosen: { offload, recompute } }) => {
      const hint = "without it each block's inner activations, by far the largest part, stay in memory";
      const expected = "true where activations are offloaded";
      if (offload?.activations === undefined || recompute === true) return undefined;
      return { option: "recompute", expected, got: recompute, hint };
    },
  },
  {
    option: "offload.parameters",
    says: "needs zero 3",
    conflict: ({ chosen: { offload, zero } }) => {
      const hint = "at lower levels all parameters are in use throughout the step";
      if (offload?.parameters === undefined || zero === 3 || zero === "fsdp") return undefined;
      return { option: "zero", expected: "3 where parameters are offloaded", got: zero, hint };
    },
  },
  relation("offload.dir", "needs nvme", ({ chosen: { offload } }) => {
    if (offload === undefined) return undefined;
    const { optimizer, activations, parameters, dir } = offload;
    if ([optimizer, activations, parameters].includes("nvme")) return folderConflict(dir);
    return dir !== undefined && { expected: "left out when nothing is offloaded to nvme", got: dir };
  }),
  relation(
    "checkpoint.dir",
    "needed by everySteps, keepLast, keepEverySteps, overwrite and writers",
    ({ given }) => {
      const { dir, inMemoryEverySteps, ...rest } = given.checkpoint ?? { dir: "" };
      const { everySteps, keepLast, keepEverySteps, overwrite, writers } = rest;
      const ofFiles = [everySteps, keepLast, keepEverySteps, overwrite || undefined, writers];
      const isOfFiles = ofFiles.some((value) => value !== undefined);
      if (dir !== undefined || (!isOfFiles && inMemoryEverySteps !== undefined)) return undefined;
      const hint = "it may be left out only with inMemoryEverySteps alone";
      return { expected: "a folder", got: undefined, hint };
    },
  ),
  rule("checkpoint.writers", "ranks goes without inMemoryEverySteps",
    ({ checkpoint }) => checkpoint?.writers === "ranks" && checkpoint.inMemoryEverySteps !== undefined,
    "left out with inMemoryEverySteps", "in-memory copies are kept by the head"),
  rule("checkpoint.keepEverySteps", "needs checkpoint.keepLast",
    ({ checkpoint }) => checkpoint?.keepEverySteps !== undefined && checkpoint.keepLast === undefined,
    "used with keepLast", "without keepLast none are removed"),
  relation("anomalies", "rewind needs a checkpoint", ({ chosen: { anomalies, checkpoint } }) => {
    const hint = "give checkpoint: { inMemoryEverySteps } or a folder to go back to";
    if (checkpoint !== undefined || !Object.values(anomalies).includes("rewind")) return undefined;
    return { expected: "rewind only with checkpoints", got: "no checkpoint", hint };
  }),
];

function folderConflict(dir: string | undefined): Omit<Conflict, "option"> | undefined {
  if (dir === undefined)
    return { expected: "given with nvme", got: dir, hint: "a folder on a fast local disk" };
  try {
    accessSync(dir, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return { expected: "a folder that can be written", got: dir, hint: (error as Error).message };
  }
}
