import type { RuntimeOptions, RuntimeSettings } from "../../../job/options/index.ts";
import { optionError } from "../option-error.ts";
import { settleResume } from "../resume/resume-auto.ts";

/** Options of `Runtime.open`. */
export interface OpenOptions
  extends Pick<
    RuntimeOptions,
    "ranks" | "tp" | "sequenceParallel" | "ep" | "pp" | "schedule" | "chunks" | "zero"
  > {
  /**
   * Lower-case letters, digits and -, beginning with a letter: tells a further model apart. It begins the names of the model's
   * actors, and its events carry it as `model`. A model with a name has ranks of its own: as many as the runtime, unless the
   * options above say otherwise.
   */
  readonly name?: string | undefined;
  /** The folder and times of its saves. Default for a model with a name: copies in memory alone. */
  readonly checkpoint?: RuntimeOptions["checkpoint"];
  /** The checkpoint that it goes on from. Default for a model with a name: none. */
  readonly resume?: RuntimeOptions["resume"];
}

/** Steps between copies in memory of a live model that saves nothing else: its calls are kept since the last. */
const COPY_EVERY_STEPS = 64;

const NAME = /^[a-z][a-z0-9-]*$/;

/**
 * The settings of a live model, and where it is to begin; it keeps states, since calls are kept from the last one on.
 * @param runtime - the options of its runtime
 * @param settled - the same, with all decisions made
 * @param isLaunched - whether the runtime spans several hosts
 * @throws {TroupeError} `OPTION`
 */
export async function settingsOfModel(
  { name, ...own }: OpenOptions,
  runtime: RuntimeOptions,
  settled: RuntimeSettings,
  isLaunched: boolean,
): Promise<RuntimeSettings> {
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  if (name === undefined && given.length > 0)
    throw optionError(
      "name",
      `given with ${given[0]?.[0]} of a live model`,
      "none",
      "without a name, Runtime.spawn decides",
    );
  if (name !== undefined && !NAME.test(name))
    throw optionError("name", "lower-case letters, digits and -, beginning with a letter", name);
  if (name !== undefined && isLaunched)
    throw optionError("name", "left out on several hosts, which have one model", name);
  // Imported lazily, as the runtime does.
  const { settle } = await import("../../../job/options/index.ts");
  const chosen = await settleResume(
    name === undefined ? settled : settle({ ...runtime, checkpoint: undefined, resume: undefined, ...own }),
  );
  const supervision = { ...chosen.supervision, warmStandby: runtime.warmStandby ?? true };
  const { inMemoryEverySteps, dir } = chosen.checkpoint ?? {};
  const isCopied = inMemoryEverySteps !== undefined || dir !== undefined;
  const { checkpoint } = isCopied ? chosen : settle({ checkpoint: { inMemoryEverySteps: COPY_EVERY_STEPS } });
  return { ...chosen, supervision, checkpoint };
}
