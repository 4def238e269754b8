import type { DashboardOptions } from "../dashboard/index.ts";
import type { NamesOf } from "../errors.ts";
import type { EventSink } from "../events/index.ts";
import type { LossScaleRule } from "../optim/index.ts";
import type { Recompute, ScheduleName, ZeroName } from "../parallel/index.ts";
import type { AnomalyOptions } from "./anomalies.ts";
import type { CheckpointOptions } from "./checkpointing.ts";
import type { OffloadOptions, SlowdownOptions } from "./offload.ts";
import type { Precision, Rounding } from "./precision.ts";
import type { Cadence } from "./telemetry.ts";

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

/** The names of {@link RuntimeOptions}. */
export const runtimeOptionNames: NamesOf<RuntimeOptions> = {
  ranks: true,
  tp: true,
  sequenceParallel: true,
  overlapChunks: true,
  ep: true,
  pp: true,
  schedule: true,
  chunks: true,
  accumulation: true,
  recompute: true,
  zero: true,
  placement: true,
  precision: true,
  lossScale: true,
  rounding: true,
  seed: true,
  steps: true,
  prefetchBytes: true,
  threadsPerRank: true,
  offload: true,
  slowdown: true,
  trace: true,
  traceEvery: true,
  memory: true,
  histograms: true,
  sinks: true,
  dashboard: true,
  checkpoint: true,
  anomalies: true,
  resume: true,
  deadlineMs: true,
  stallMs: true,
  understudies: true,
  maxRestarts: true,
};
