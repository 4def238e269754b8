import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { initialLossScale, type LossScaleRule } from "../../compute/optim/index.ts";
import { parseZeroLevel } from "../../compute/parallel/index.ts";
import {
  DEVICE_KINDS,
  type Device,
  deviceCount,
  parseDevice,
  requireDevice,
} from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type Anomaly, type AnomalyRules, DEFAULT_RULES, type Policy } from "../anomalies/index.ts";
import type { DashboardOptions, Precision, RuntimeOptions } from "./options.generated.ts";
import { readRuntime } from "./read.ts";
import type { Choice } from "./relations.ts";
import { shapes, USUAL_RATIO } from "./schema.ts";
import type {
  Chosen,
  Group,
  GroupName,
  LayoutSettings,
  OffloadHome,
  OffloadSettings,
  PrecisionSettings,
  RuntimeSettings,
  TelemetrySettings,
} from "./settings.ts";

/** Next to the run's checkpoints, so that an open page finds the run that resumes from them. */
const TOKEN_FILE_NAME = "dashboard.token";

/**
 * Checks a script's options and makes all decisions that they leave open.
 * @param numHosts - hosts that a launcher has spread the ranks over, with equal numbers of cores; undefined without a launcher
 * @throws {TroupeError} `OPTION` naming the option, the expected and the given value; `OPTIMIZER_OPTION` for an invalid number in
 *   a loss scale's rule
 */
export function settle(options: RuntimeOptions, numHosts?: number): RuntimeSettings {
  return settingsOf(readRuntime(options), numHosts);
}

/** @returns the settings of valid options */
export function settingsOf({ given, chosen }: Choice, launchedHosts?: number): RuntimeSettings {
  const numHosts = launchedHosts ?? 1;
  const { warmStandby, threadsPerRank, deadlineMs, slowdown, checkpoint } = chosen;
  const cores = Math.max(1, Math.floor(cpus().length / Math.ceil(chosen.ranks / numHosts)));
  return {
    layout: layoutOf(chosen, launchedHosts !== undefined),
    training: { ...groupOf(chosen, "training"), isSeedAsked: given.seed !== undefined },
    precision: {
      ...plannedPrecision(chosen.precision),
      rounding: chosen.rounding,
      invariant: chosen.invariant,
      lossScale: lossScaleOf(chosen.precision, chosen.lossScale),
    },
    execution: {
      ...groupOf(chosen, "execution"),
      devices: devicesOf(chosen, numHosts),
      threadsPerRank: threadsPerRank ?? cores,
      deadlineMs,
      slowdown,
    },
    offload: offloadOf(chosen),
    checkpoint,
    // Without saves a restart begins at the first step, so a second of loading does not matter.
    supervision: { ...groupOf(chosen, "supervision"), warmStandby: warmStandby ?? checkpoint !== undefined },
    anomalies: anomaliesOf(chosen),
    telemetry: telemetryOf(chosen),
    dashboard: dashboardOf(chosen),
  };
}

function groupOf<Name extends GroupName>(chosen: Chosen, name: Name): Group<Name> {
  const names = Object.keys(shapes[name]) as (keyof Chosen)[];
  return Object.fromEntries(names.map((option) => [option, chosen[option]])) as Group<Name>;
}

/** The mesh is checked against ranks, model and batch once these are known. */
function layoutOf(chosen: Chosen, isLaunched: boolean): LayoutSettings {
  const { tp, pp, ep, schedule, zero, device: _, carrier, ...others } = groupOf(chosen, "layout");
  return {
    ...others,
    mesh: { tp, pp, ep, dp: others.ranks / (tp * pp) },
    schedule: schedule ?? (others.chunks > 1 ? "interleaved" : "1f1b"),
    zero: parseZeroLevel(zero),
    carrier: carrier === "auto" ? carrierOf(chosen, isLaunched) : carrier,
  };
}

/** Processes do not share device memory: between them tensors pass through host memory. */
function carrierOf({ placement, device }: Chosen, isLaunched: boolean): LayoutSettings["carrier"] {
  if (placement === "thread") return "alias";
  if (present(device)[0] !== "cpu") return "gloo";
  return isLaunched ? "hosts" : "shared";
}

/**
 * Assigns each rank a device. On each host, consecutive ranks get the same device or neighbouring ones, so that ranks that split
 * a layer are close.
 * @throws {TroupeError} `OPTION` if NCCL would have to give two ranks one device
 */
function devicesOf({ device, ranks, carrier }: Chosen, numHosts: number): Device[] {
  const devices = present(device);
  const hostOf = (rank: number) => Math.floor((rank * numHosts) / ranks);
  const perHost = Map.groupBy(Array.from({ length: ranks }).keys(), hostOf);
  return [...perHost.values()].flatMap((local) => {
    if (carrier === "nccl" && local.length > devices.length) throw tooFewDevices(local.length, devices);
    const numUsed = Math.min(devices.length, local.length);
    return local.map((_, index) => devices[Math.floor((index * numUsed) / local.length)] as Device);
  });
}

function tooFewDevices(numRanks: number, devices: readonly Device[]): TroupeError {
  return new TroupeError("OPTION", {
    where: "options",
    expected: `carrier nccl with a device for each rank of a host, of which there are ${numRanks}`,
    got: devices.join(", "),
    hint: "ranks that share a device read each other's memory: leave carrier out, or take fewer ranks",
    fields: { option: "carrier", got: "nccl" },
  });
}

/** @returns this host's devices that a name means: one, or all of a kind @throws {TroupeError} `DEVICE_UNAVAILABLE` */
function present(name: string): Device[] {
  const kind = DEVICE_KINDS.find((each) => each === (name === "auto" ? "cuda" : name));
  const count = kind === undefined ? 0 : deviceCount(kind);
  if (count > 0) return Array.from({ length: count }, (_, index) => `${kind}:${index}` as Device);
  const device = name === "auto" ? "cpu" : parseDevice(name);
  requireDevice(device);
  return [device];
}

function plannedPrecision(name: Precision): Pick<PrecisionSettings, "name" | "weights" | "autocast"> {
  const low = name.endsWith("bf16") ? "bfloat16" : "float16";
  if (name === "fp32") return { name, weights: "float32", autocast: undefined };
  if (name.startsWith("amp")) return { name, weights: "float32", autocast: low };
  return { name, weights: low, autocast: undefined };
}

/** Default: torch's rule in float16, where small gradients underflow, else none. */
function lossScaleOf(precision: Precision, asked: Chosen["lossScale"]): LossScaleRule | undefined {
  if (asked === undefined) return precision.endsWith("fp16") ? { kind: "torch" } : undefined;
  const rule = ruleOf(asked);
  initialLossScale(rule);
  return rule;
}

function ruleOf(asked: NonNullable<Chosen["lossScale"]>): LossScaleRule {
  if (typeof asked === "number") return { kind: "static", scale: asked };
  return (typeof asked === "string" ? { kind: asked } : asked) as LossScaleRule;
}

function offloadOf({ offload = {} }: Chosen): OffloadSettings {
  const { optimizer, ratio = USUAL_RATIO, activations, parameters, dir } = offload;
  const directory = dir === undefined ? "" : resolve(dir);
  const homeOf = (kind: "host" | "nvme"): OffloadHome => (kind === "nvme" ? { kind, directory } : { kind });
  return {
    optimizer: optimizer && { home: homeOf(optimizer), ratio },
    activations: activations && homeOf(activations),
    parameters: parameters && { directory },
  };
}

function anomaliesOf({ anomalies }: Chosen): AnomalyRules {
  const { loss, gradient, spike, straggler, ...limits } = anomalies;
  const policies: Record<Anomaly, Policy> = {
    "loss-not-finite": loss,
    "gradient-not-finite": gradient,
    "loss-spike": spike,
    straggler,
  };
  return { ...DEFAULT_RULES, ...limits, policies };
}

function telemetryOf(chosen: Chosen): TelemetrySettings {
  const { sinks: _, traceEvery, ...others } = groupOf(chosen, "telemetry");
  return { ...others, traceEvery: traceEvery ?? (others.trace ? 1 : 0) };
}

function dashboardOf({ dashboard, checkpoint }: Chosen): DashboardOptions | undefined {
  if (dashboard === false) return undefined;
  const folder = checkpoint?.dir;
  // Other users might read a token in a remote store.
  const isHere = folder !== undefined && !folder.includes("://");
  return {
    ...(isHere ? { tokenFile: join(folder, TOKEN_FILE_NAME) } : {}),
    ...(dashboard === true ? {} : dashboard),
  };
}
