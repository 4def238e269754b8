import { cpus } from "node:os";
import type { AnomalyRules } from "../anomalies/index.ts";
import type { DashboardOptions } from "../dashboard/index.ts";
import type { LossScaleRule } from "../optim/index.ts";
import {
  checkLayout,
  Mesh,
  type MeshShape,
  PLAIN_LAYOUT,
  parseZeroLevel,
  type Recompute,
  type ScheduleName,
  type ZeroLevel,
} from "../parallel/index.ts";
import type { OffloadSettings } from "../protocols/index.ts";
import { settleAnomalies } from "./anomalies.ts";
import { type CheckpointSettings, settleCheckpoint } from "./checkpointing.ts";
import { settleDashboard } from "./dashboard.ts";
import { type SlowdownOptions, settleOffload, settleSlowdown } from "./offload.ts";
import { optionError, refuseUnknown } from "./option-error.ts";
import { type RankPlacement, type RuntimeOptions, runtimeOptionNames } from "./options.ts";
import {
  lossScaleOf,
  type PrecisionPlan,
  precisionPlan,
  precisions,
  type Rounding,
  roundingOf,
} from "./precision.ts";
import { settleTelemetry, type TelemetrySettings } from "./telemetry.ts";
import { whole } from "./whole.ts";

/** {@link RuntimeOptions} with every choice made. */
export interface RuntimeSettings {
  readonly numRanks: number;
  readonly mesh: MeshShape;
  readonly schedule: ScheduleName;
  readonly numChunks: number;
  readonly accumulation: number | undefined;
  readonly recompute: Recompute;
  readonly sequence: boolean;
  readonly overlapChunks: number;
  readonly zero: ZeroLevel;
  readonly placement: RankPlacement;
  readonly precision: PrecisionPlan;
  readonly lossScale: LossScaleRule | undefined;
  readonly rounding: Rounding;
  readonly seed: number;
  readonly steps: number | undefined;
  readonly prefetchBytes: number;
  readonly threadsPerRank: number;
  readonly offload: OffloadSettings;
  readonly slowdown: Required<SlowdownOptions>;
  readonly telemetry: TelemetrySettings;
  readonly checkpoint: CheckpointSettings | undefined;
  readonly dashboard: DashboardOptions | undefined;
  readonly anomalies: AnomalyRules;
  readonly resume: string | undefined;
  readonly deadlineMs: number;
  readonly stallMs: number;
  readonly understudies: boolean;
  readonly maxRestarts: number;
}

const MAX_RANKS = 256;

const SCHEDULES = ["gpipe", "1f1b", "interleaved"] as const;

/** Asks nothing of a layout. */
export const ANY_MODEL = { numBlocks: Number.MAX_SAFE_INTEGER, dividedByTp: {}, numExperts: 0 } as const;

/**
 * Checks options and fills in what was left out.
 * @throws {TroupeError} `OPTION` naming the option, what it must be and what it is; `ZERO_LEVEL`
 */
export function settle(options: RuntimeOptions): RuntimeSettings {
  refuseUnknown("the options", options, runtimeOptionNames);
  const ranks = whole("ranks", options.ranks ?? 1, 1, MAX_RANKS);
  const tp = whole("tp", options.tp ?? 1, 1);
  const pp = whole("pp", options.pp ?? 1, 1);
  const ep = whole("ep", options.ep ?? 1, 1);
  const numChunks = whole("chunks", options.chunks ?? 1, 1);
  const schedule = oneOf("schedule", options.schedule ?? (numChunks > 1 ? "interleaved" : "1f1b"), SCHEDULES);
  const layout = { ...PLAIN_LAYOUT, ranks, tp, pp, schedule, numChunks };
  // What a model, its batch and micro-batches have to say comes later, once the job is known.
  checkLayout(ANY_MODEL, { ...layout, accumulation: pp, batchSize: ranks });
  return {
    numRanks: ranks,
    mesh: meshOf(ranks, { tp, pp, ep }),
    schedule,
    numChunks,
    accumulation:
      options.accumulation === undefined ? undefined : whole("accumulation", options.accumulation, 1),
    recompute: options.recompute ?? false,
    sequence: sequenceParallel(options, tp),
    overlapChunks: overlapChunks(options),
    zero: parseZeroLevel(options.zero ?? 3),
    placement: oneOf("placement", options.placement ?? "thread", ["thread", "process"]),
    precision: precisionPlan(oneOf("precision", options.precision ?? "fp32", precisions)),
    lossScale: lossScaleOf(options),
    rounding: roundingOf(options),
    seed: whole("seed", options.seed ?? 1337, 0),
    steps: options.steps === undefined ? undefined : whole("steps", options.steps, 0),
    prefetchBytes: atLeastZero("prefetchBytes", options.prefetchBytes ?? 2 ** 28),
    threadsPerRank: whole(
      "threadsPerRank",
      options.threadsPerRank ?? Math.max(1, Math.floor(cpus().length / ranks)),
      1,
    ),
    offload: settleOffload({ ...options, zero: parseZeroLevel(options.zero ?? 3) }),
    slowdown: settleSlowdown(options.slowdown ?? {}),
    telemetry: settleTelemetry(options),
    checkpoint: settleCheckpoint(options.checkpoint),
    dashboard: settleDashboard(options),
    anomalies: settleAnomalies(options.anomalies, options.checkpoint !== undefined),
    resume: options.resume,
    deadlineMs: whole("deadlineMs", options.deadlineMs ?? 600_000, 1),
    stallMs: whole("stallMs", options.stallMs ?? 10_000, 1),
    understudies: options.understudies ?? true,
    maxRestarts: whole("maxRestarts", options.maxRestarts ?? 3, 0),
  };
}

function meshOf(ranks: number, { tp, pp, ep }: { tp: number; pp: number; ep: number }): MeshShape {
  return new Mesh({ tp, pp, ep, dp: ranks / (tp * pp) }).shape;
}

function sequenceParallel({ sequenceParallel = false }: RuntimeOptions, tp: number): boolean {
  if (!sequenceParallel || tp > 1) return sequenceParallel;
  throw optionError(
    "sequenceParallel",
    "used with tp ≥ 2",
    `tp ${tp}`,
    "positions are shared by the ranks that split a layer",
  );
}

function overlapChunks({ overlapChunks = 1, sequenceParallel = false }: RuntimeOptions): number {
  if (whole("overlapChunks", overlapChunks, 1) === 1 || sequenceParallel) return overlapChunks;
  throw optionError(
    "overlapChunks",
    "used with sequenceParallel",
    overlapChunks,
    "only what is gathered before a product and scattered behind it can overlap it",
  );
}

function oneOf<T extends string>(option: string, value: T, choices: readonly T[]): T {
  if (choices.includes(value)) return value;
  throw optionError(option, choices.join(" or "), value);
}

function atLeastZero(option: string, value: number): number {
  if (value >= 0) return value;
  throw optionError(option, "≥ 0", value);
}
