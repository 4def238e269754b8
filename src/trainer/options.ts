import { cpus } from "node:os";
import type { OffloadSettings } from "../actors/index.ts";
import type { AnomalyRules } from "../anomalies/index.ts";
import type { DashboardOptions } from "../dashboard/index.ts";
import type { EventSink } from "../events/index.ts";
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
  type ZeroName,
} from "../parallel/index.ts";

/**
 * Where ranks live: each on threads of this process, or in a process of its own, which a crash of native code in another, or
 * its end by the system, leaves alive. The losses are the same.
 */
export type RankPlacement = "thread" | "process";

/** How a run is spread and kept; the job itself says what is trained. */
export interface RuntimeOptions {
  /** Ranks, one thread each. 1 */
  readonly ranks?: number;
  /** Ranks that split one layer. 1 */
  readonly tp?: number;
  /** Whether those ranks also share the positions between the split layers (sequence parallelism). false */
  readonly sequenceParallel?: boolean;
  /** In how many chunks those ranks' gathers and reductions of positions overlap the products beside them; 1: not at all. 1 */
  readonly overlapChunks?: number;
  /** Replicas among which a model's experts are dealt; divides the replicas. 1 */
  readonly ep?: number;
  /** Pipeline stages, each with a part of the model's blocks. 1 */
  readonly pp?: number;
  /** In which order stages run micro-batches: "gpipe", "1f1b", "interleaved". "1f1b", with several chunks "interleaved" */
  readonly schedule?: ScheduleName;
  /** Parts of the model on each stage, for an interleaved schedule. 1 */
  readonly chunks?: number;
  /** Micro-batches of one replica in one step; the job's own number. */
  readonly accumulation?: number;
  /**
   * What backward computes again instead of keeping what forward computed inside: blocks (true), or parts of each block by
   * the names of their modules, such as `["attn"]`. false
   */
  readonly recompute?: Recompute;
  /** What is split over the replicas, of every block that does not say otherwise: a ZeRO level or its name. 3 */
  readonly zero?: number | ZeroName;
  /** "thread" */
  readonly placement?: RankPlacement;
  /** "fp32" */
  readonly precision?: Precision;
  /** What the loss is multiplied by, or by whose rules that changes; torch's for float16, else none. */
  readonly lossScale?: number | LossScaleRule;
  /** How narrow weights are made of their masters: to nearest, or up or down by chance, right in the mean. "nearest" */
  readonly rounding?: Rounding;
  /** Every random number of the run follows from it. 1337 */
  readonly seed?: number;
  /** Optimizer steps in all; the job's own number. */
  readonly steps?: number;
  /** How far gathers run ahead of the computation, in bytes; 0: on demand, Infinity: all at once. 256 MiB */
  readonly prefetchBytes?: number;
  /** Threads of one rank's arithmetic; the machine's cores, divided by the ranks. */
  readonly threadsPerRank?: number;
  /** State that is kept outside the shards; all of it within. */
  readonly offload?: OffloadOptions;
  /** Delays on purpose; none. */
  readonly slowdown?: SlowdownOptions;
  /** Tells of what every actor does, as `activity.finished`, and of every message, as `message.handled`. false */
  readonly trace?: boolean;
  /** Of the steps and of other beginnings, each so-many-th has its messages told, as `message.handled`; 0: none. 1 with `trace`, else 0 */
  readonly traceEvery?: number;
  /** How often it is told what each rank holds, as `memory.measured`. `{ everySteps: 10 }` */
  readonly memory?: Cadence;
  /** How often the values of parameters and gradients are sorted into buckets, as `histogram.measured`; never unless told. */
  readonly histograms?: Cadence;
  /** Where events are written, from the first on; the runtime closes them when it stops. */
  readonly sinks?: readonly EventSink[];
  /** Serves a page that shows the run; its address is `runtime.dashboardUrl`. false */
  readonly dashboard?: boolean | DashboardOptions;
  /** What of the run is saved, when and where to; nothing is unless told. */
  readonly checkpoint?: CheckpointOptions;
  /** What is done where a loss, a gradient or a rank is out of the ordinary; a run ends where nothing could be trained any more. */
  readonly anomalies?: AnomalyOptions;
  /** Folder of a checkpoint, or of a run's checkpoints, to go on from. */
  readonly resume?: string;
  /** How long one piece of work may take (a few steps, an evaluation, a save) before it counts as hung, in ms. 600,000 */
  readonly deadlineMs?: number;
  /**
   * How long an actor may show no progress in the middle of a step before it is named by `actor.stalled` and ended, so that
   * its group starts again, in ms; never less than five times what is long among the latest 100 steps. 10,000
   */
  readonly stallMs?: number;
  /**
   * Whether each actor of the group has an understudy once the group has made steps for 2 s: a thread, or process, that has
   * loaded its modules and waits to take its place, so that a restart is a matter of milliseconds. Their memory is the price. true
   */
  readonly understudies?: boolean;
  /** How often the rank group may be restarted within five minutes before the run fails. 3 */
  readonly maxRestarts?: number;
}

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

import { type AnomalyOptions, settleAnomalies } from "./anomalies.ts";
import { type CheckpointOptions, type CheckpointSettings, settleCheckpoint } from "./checkpointing.ts";
import { settleDashboard } from "./dashboard.ts";
import { type OffloadOptions, type SlowdownOptions, settleOffload, settleSlowdown } from "./offload.ts";
import { optionError } from "./option-error.ts";
import {
  lossScaleOf,
  type Precision,
  type PrecisionPlan,
  precisionPlan,
  precisions,
  type Rounding,
  roundingOf,
} from "./precision.ts";
import { type Cadence, settleTelemetry, type TelemetrySettings } from "./telemetry.ts";
import { whole } from "./whole.ts";

const MAX_RANKS = 256;

const SCHEDULES = ["gpipe", "1f1b", "interleaved"] as const;

/** Asks nothing of a layout. */
export const ANY_MODEL = { numBlocks: Number.MAX_SAFE_INTEGER, dividedByTp: {}, numExperts: 0 } as const;

/**
 * Checks options and fills in what was left out.
 * @throws {TroupeError} `OPTION` naming the option, what it must be and what it is; `ZERO_LEVEL`
 */
export function settle(options: RuntimeOptions): RuntimeSettings {
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
