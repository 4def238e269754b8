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
  complain: (choice: Choice) => Omit<Conflict, "option"> | undefined,
): Relation {
  const conflict = (choice: Choice) => {
    const found = complain(choice);
    return found && { option, ...found };
  };
  return { option, says, conflict };
}

/** Conditions between options that hold for any job. `checkLayout` checks a layout against a model. */
export const relations: readonly Relation[] = [
  relation("sequenceParallel", "needs tp ≥ 2", ({ chosen: { sequenceParallel, tp } }) =>
    sequenceParallel && tp < 2
      ? {
          expected: "used with tp ≥ 2",
          got: `tp ${tp}`,
          hint: "positions are split over the tp ranks",
        }
      : undefined,
  ),
  relation("chunks", "needs pp ≥ 2", ({ chosen: { chunks, pp } }) =>
    chunks > 1 && pp < 2
      ? {
          expected: "used with pp ≥ 2",
          got: chunks,
          hint: "only pipeline stages hold several chunks",
        }
      : undefined,
  ),
  relation("overlapChunks", "needs sequenceParallel", ({ chosen: { overlapChunks, sequenceParallel } }) =>
    overlapChunks > 1 && !sequenceParallel
      ? {
          expected: "used with sequenceParallel",
          got: overlapChunks,
          hint: "only gathers and reductions of split positions can overlap",
        }
      : undefined,
  ),
  relation("change", "needs resume", ({ given: { change = [], resume } }) =>
    change.length > 0 && resume === undefined
      ? {
          expected: "used with resume",
          got: change,
          hint: "without resume there is no earlier run to differ from",
        }
      : undefined,
  ),
  relation("resume", "auto needs checkpoint.dir", ({ chosen: { resume, checkpoint } }) =>
    resume === "auto" && checkpoint?.dir === undefined
      ? {
          expected: "used with checkpoint.dir",
          got: resume,
          hint: "auto looks for checkpoints in that folder",
        }
      : undefined,
  ),
  relation("hosts.tls", "cert, key and ca go together", ({ given: { hosts } }) => {
    const { cert, key, ca } = hosts?.tls ?? {};
    const missing = Object.entries({ cert, key, ca }).flatMap(([name, file]) =>
      file === undefined ? name : [],
    );
    if (hosts?.tls === undefined || missing.length === 0) return undefined;
    return {
      expected: "given with cert, key and ca",
      got: `none for ${missing.join(" and ")}`,
      hint: "mutual TLS needs all three",
    };
  }),
  relation("carrier", 'gloo and nccl need placement "process"', ({ chosen: { carrier, placement } }) =>
    carrier !== "auto" && placement !== "process"
      ? {
          expected: 'used with placement "process"',
          got: carrier,
          hint: "threads of one process share memory",
        }
      : undefined,
  ),
  relation("carrier", "nccl needs a device", ({ chosen: { carrier, device } }) =>
    carrier === "nccl" && device === "cpu"
      ? { expected: "used with a device", got: carrier, hint: "on cpu use gloo" }
      : undefined,
  ),
  relation("carrier", "gloo and nccl go without offload.parameters", ({ chosen: { carrier, offload } }) =>
    carrier !== "auto" && offload?.parameters !== undefined
      ? {
          expected: "used without offload.parameters",
          got: carrier,
          hint: "with gloo and nccl each rank gathers parameters into its own memory",
        }
      : undefined,
  ),
  relation("offload.parameters", "needs device cpu", ({ chosen: { offload, device } }) =>
    offload?.parameters !== undefined && device !== "cpu"
      ? {
          expected: "left out on a device",
          got: offload.parameters,
          hint: "only parameters in host memory can be paged to files",
        }
      : undefined,
  ),
  relation(
    "offload.activations",
    "nvme needs device cpu, host another",
    ({ chosen: { offload, device } }) => {
      if (offload?.activations === undefined || (offload.activations === "nvme") === (device === "cpu"))
        return undefined;
      return device === "cpu"
        ? { expected: "nvme", got: "host", hint: "on this device they already are in the host's memory" }
        : {
            expected: "host on a device",
            got: "nvme",
            hint: "activations of a device are offloaded to host memory",
          };
    },
  ),
  relation("rounding", "stochastic needs weights in bf16 or fp16", ({ chosen: { rounding, precision } }) =>
    rounding === "stochastic" && precision !== "bf16" && precision !== "fp16"
      ? { expected: `nearest with ${precision}, whose weights are not rounded`, got: rounding }
      : undefined,
  ),
  relation("offload.optimizer", "or activations or parameters, where offload is given", ({ given }) => {
    const { optimizer, activations, parameters, ...rest } = given.offload ?? { optimizer: "host" };
    if (optimizer !== undefined || activations !== undefined || parameters !== undefined) return undefined;
    const others = Object.keys(rest).join(", ") || "offload";
    return { expected: "host or nvme", got: undefined, hint: `${others} alone offloads nothing` };
  }),
  relation("offload.ratio", "needs offload.optimizer", ({ given: { offload } }) =>
    offload?.ratio !== undefined && offload.optimizer === undefined
      ? { expected: "left out without offload.optimizer", got: offload.ratio }
      : undefined,
  ),
  {
    option: "offload.activations",
    says: "needs recompute true",
    conflict: ({ chosen: { offload, recompute } }) =>
      offload?.activations !== undefined && recompute !== true
        ? {
            option: "recompute",
            expected: "true where activations are offloaded",
            got: recompute,
            hint: "without it each block's inner activations, by far the largest part, stay in memory",
          }
        : undefined,
  },
  {
    option: "offload.parameters",
    says: "needs zero 3",
    conflict: ({ chosen: { offload, zero } }) =>
      offload?.parameters !== undefined && zero !== 3 && zero !== "fsdp"
        ? {
            option: "zero",
            expected: "3 where parameters are offloaded",
            got: zero,
            hint: "at lower levels all parameters are in use throughout the step",
          }
        : undefined,
  },
  relation("offload.dir", "needs nvme", ({ chosen: { offload } }) => {
    if (offload === undefined) return undefined;
    const { optimizer, activations, parameters, dir } = offload;
    const usesFiles = [optimizer, activations, parameters].includes("nvme");
    if (usesFiles) return folderConflict(dir);
    return dir === undefined
      ? undefined
      : { expected: "left out when nothing is offloaded to nvme", got: dir };
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
      return {
        expected: "a folder",
        got: undefined,
        hint: "it may be left out only with inMemoryEverySteps alone",
      };
    },
  ),
  relation("checkpoint.writers", "ranks goes without inMemoryEverySteps", ({ chosen: { checkpoint } }) =>
    checkpoint?.writers === "ranks" && checkpoint.inMemoryEverySteps !== undefined
      ? {
          expected: "left out with inMemoryEverySteps",
          got: checkpoint.writers,
          hint: "in-memory copies are kept by the head",
        }
      : undefined,
  ),
  relation("checkpoint.keepEverySteps", "needs checkpoint.keepLast", ({ given: { checkpoint } }) =>
    checkpoint?.keepEverySteps !== undefined && checkpoint.keepLast === undefined
      ? {
          expected: "used with keepLast",
          got: checkpoint.keepEverySteps,
          hint: "without keepLast none are removed",
        }
      : undefined,
  ),
  relation("anomalies", "rewind needs a checkpoint", ({ chosen: { anomalies, checkpoint } }) =>
    Object.values(anomalies).includes("rewind") && checkpoint === undefined
      ? {
          expected: "rewind only with checkpoints",
          got: "no checkpoint",
          hint: "give checkpoint: { inMemoryEverySteps } or a folder to go back to",
        }
      : undefined,
  ),
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
