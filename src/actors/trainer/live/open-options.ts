import type { RuntimeOptions, RuntimeSettings } from "../../../job/options/index.ts";
import type { Launch } from "../../launch/index.ts";
import { optionError } from "../option-error.ts";
import { hostsOf, launchedOptions } from "../plan/launched.ts";
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
   * options above say otherwise. At an anomaly for which the runtime rewinds, it stops.
   */
  readonly name?: string | undefined;
  /**
   * The hosts of a launch that its ranks are spread over, by number, 0 for the head: consecutive ranks share one. Default for a
   * model with a name: all, or the first ones if it has fewer ranks.
   */
  readonly hosts?: readonly number[] | undefined;
  /** The folder and times of its saves. Default for a model with a name: copies in memory alone. */
  readonly checkpoint?: RuntimeOptions["checkpoint"];
  /** The checkpoint that it goes on from. Default for a model with a name: none. */
  readonly resume?: RuntimeOptions["resume"];
}

/** The options of a model's copy: its layout's, else the model's; with fewer ranks the first ones of its hosts. */
export function optionsOfCopy(model: OpenOptions, layout: OpenOptions): OpenOptions {
  return { ...model, hosts: model.hosts?.slice(0, layout.ranks), ...layout };
}

/** Steps between copies in memory of a live model that saves nothing else: its calls are kept since the last. */
const COPY_EVERY_STEPS = 64;

const NAME = /^[a-z][a-z0-9-]*$/;

/**
 * The settings of a live model, and where it is to begin; it keeps states, since calls are kept from the last one on.
 * @param runtime - the options of its runtime
 * @param settled - the same, with all decisions made
 * @param launch - the launch on several hosts that the runtime leads, if any
 * @throws {TroupeError} `OPTION`
 */
export async function settingsOfModel(
  { name, hosts, ...own }: OpenOptions,
  runtime: RuntimeOptions,
  settled: RuntimeSettings,
  launch: Launch | undefined,
): Promise<RuntimeSettings> {
  const given = Object.entries({ ...own, hosts }).filter(([, value]) => value !== undefined);
  if (name === undefined && given.length > 0)
    throw optionError(
      "name",
      `given with ${given[0]?.[0]} of a live model`,
      "none",
      "without a name, Runtime.spawn decides",
    );
  if (name !== undefined && !NAME.test(name))
    throw optionError("name", "lower-case letters, digits and -, beginning with a letter", name);
  if (hosts !== undefined && launch === undefined)
    throw optionError("hosts", "left out without a launch on several hosts", `[${hosts.join(", ")}]`);
  if (name === undefined) refuseRewinds(runtime.anomalies);
  // Imported lazily, as the runtime does.
  const { settle } = await import("../../../job/options/index.ts");
  const anomalies = withoutRewinds(runtime.anomalies);
  const further = { ...runtime, anomalies, checkpoint: undefined, resume: undefined, ...own };
  const settledFurther = () => {
    if (launch === undefined) return settle(further);
    const launched = launchedOptions(further, launch, 1);
    const spreadOver = hostsOf(launch, launched.ranks, hosts);
    const { layout, ...others } = settle(launched, spreadOver.length);
    return { ...others, layout: { ...layout, hosts: spreadOver } };
  };
  const chosen = await settleResume(name === undefined ? settled : settledFurther());
  const supervision = { ...chosen.supervision, warmStandby: runtime.warmStandby ?? true };
  const { inMemoryEverySteps, dir } = chosen.checkpoint ?? {};
  const isCopied = inMemoryEverySteps !== undefined || dir !== undefined;
  const { checkpoint } = isCopied ? chosen : settle({ checkpoint: { inMemoryEverySteps: COPY_EVERY_STEPS } });
  return { ...chosen, supervision, checkpoint };
}

/** The script would make the calls again that led the model astray: no batches can be left out. @throws {TroupeError} `OPTION` */
function refuseRewinds(anomalies: RuntimeOptions["anomalies"] = {}): void {
  const [anomaly] = Object.entries(anomalies).find(([, policy]) => policy === "rewind") ?? [];
  if (anomaly === undefined) return;
  const hint = "its script would make the same calls again; skip leaves the update out";
  throw optionError(`anomalies.${anomaly}`, "stop or skip for a live model", "rewind", hint);
}

/** The runtime's rules for a model beside the run that they are meant for: it stops where that goes back. */
function withoutRewinds(anomalies: RuntimeOptions["anomalies"]): RuntimeOptions["anomalies"] {
  const rules = Object.entries(anomalies ?? {});
  return Object.fromEntries(rules.map(([anomaly, rule]) => [anomaly, rule === "rewind" ? "stop" : rule]));
}
