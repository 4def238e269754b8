import type { CarrierName, Reduction } from "../../compute/collectives/index.ts";
import type { LossScaleRule } from "../../compute/optim/index.ts";
import type { MeshShape, Recompute, ScheduleName, ZeroLevel } from "../../compute/parallel/index.ts";
import type { AutocastDType, Binding, Device, DType } from "../../compute/tensor/index.ts";
import type { AnomalyRules } from "../anomalies/index.ts";
import type { DashboardOptions, Precision, RankPlacement, Rounding } from "./options.generated.ts";

/** Options with every choice made, by subject. Plain data: a plan may carry any of these groups whole. */
export interface RuntimeSettings {
  readonly layout: LayoutSettings;
  readonly training: TrainingSettings;
  readonly precision: PrecisionSettings;
  readonly execution: ExecutionSettings;
  readonly offload: OffloadSettings;
  /** Undefined: nothing is saved. */
  readonly checkpoint: CheckpointSettings | undefined;
  readonly supervision: SupervisionSettings;
  readonly hosts: HostSettings;
  readonly anomalies: AnomalyRules;
  readonly telemetry: TelemetrySettings;
  readonly dashboard: DashboardOptions | undefined;
}

/** How the ranks share the model and its batch. */
export interface LayoutSettings {
  readonly numRanks: number;
  /** What was asked for: whether it fits is known once the model is, and checked before a rank is spawned. */
  readonly mesh: MeshShape;
  readonly schedule: ScheduleName;
  /** Parts of the model on each pipeline stage. */
  readonly numChunks: number;
  readonly zero: ZeroLevel;
  /** Whether ranks that split a layer share the positions between the split layers. */
  readonly sequence: boolean;
  /** In how many chunks their gathers overlap products. */
  readonly overlapChunks: number;
  readonly placement: RankPlacement;
  readonly carrier: CarrierName;
  readonly reduction: Reduction;
}

/** What of a job's training is said from outside. */
export interface TrainingSettings {
  readonly steps: number | undefined;
  readonly accumulation: number | undefined;
  /** The one asked for, else the usual one; a run that goes on from a checkpoint has that one's. */
  readonly seed: number;
  readonly isSeedAsked: boolean;
  /** Folder of a checkpoint, or of a run's checkpoints. */
  readonly resume: string | undefined;
  /** What may be other than in the run of that checkpoint, by name. */
  readonly change: readonly string[];
}

/** What a rank computes in. */
export interface PrecisionSettings {
  readonly name: Precision;
  /** Of the parameters that the ranks compute with. */
  readonly weights: DType;
  /** What autocast casts to; undefined: there is none. */
  readonly autocast: AutocastDType | undefined;
  readonly lossScale: LossScaleRule | undefined;
  readonly rounding: Rounding;
}

/** How a rank works through a step. */
export interface ExecutionSettings {
  /** By rank, what it computes on: all on the same, or spread over those of one kind. */
  readonly devices: readonly Device[];
  readonly recompute: Recompute;
  readonly prefetchBytes: number;
  readonly threadsPerRank: number;
  readonly bind: Binding;
  /** How long one piece of work may take before it counts as hung. */
  readonly deadlineMs: number;
  readonly slowdown: {
    readonly updateMs: number;
    readonly reduceMs: number;
    readonly transferMs: number;
  };
}

/** Where something is kept: in memory of the host, or in files on the disk of a folder. */
export type OffloadHome = { readonly kind: "host" } | { readonly kind: "nvme"; readonly directory: string };

/** What is kept elsewhere than where it is used. */
export interface OffloadSettings {
  readonly optimizer:
    | {
        /** How much of the optimizer's state, from 0 to 1. */
        readonly ratio: number;
        readonly home: OffloadHome;
      }
    | undefined;
  /** What recomputed blocks keep for backward: in files, or, of a device, in the host's memory. */
  readonly activations: OffloadHome | undefined;
  /** The parameters of blocks at level 3, between their uses: in files on the disk of a folder. */
  readonly parameters: { readonly directory: string } | undefined;
}

/** What is saved, when and where. */
export interface CheckpointSettings {
  /** Undefined: only copies in memory are kept. */
  readonly directory: string | undefined;
  /** Whether checkpoints of another run there are removed. */
  readonly overwrite: boolean;
  readonly everySteps: number;
  readonly whenBusy: "wait" | "skip";
  /** Who writes in a run of several hosts: see `checkpoint.writers`. */
  readonly writers: "auto" | "head" | "ranks";
  readonly keepLast: number | undefined;
  readonly keepEverySteps: number | undefined;
  readonly inMemoryEverySteps: number | undefined;
  readonly maxStagedBytes: number;
}

/** When an actor counts as stuck, and how often it may be started again. */
export interface SupervisionSettings {
  readonly stallMs: number;
  readonly warmStandby: boolean;
  readonly maxRestarts: number;
  /** Whether a signal lets a run save and end. */
  readonly signals: boolean;
  /** How long that may take. */
  readonly graceMs: number;
}

/** How the hosts of a run are waited for, and when one counts as lost. */
export interface HostSettings {
  readonly deadlineMs: number;
  readonly silenceMs: number;
  /** Files by which hosts know each other. */
  readonly trust: TrustFiles;
}

/** Files by which hosts know each other: see `HostsOptions`. */
export interface TrustFiles {
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined;
  readonly tokenFile: string | undefined;
}

/** What a run tells beside what always is told; Infinity: never. */
export interface TelemetrySettings {
  /** Tells errors with every frame and all their causes. */
  readonly debug: boolean;
  /** Tells of what every actor does to every block. */
  readonly trace: boolean;
  /** Of the messages that no traced handling has sent, each so-many-th begins a trace; 0: none. */
  readonly traceEvery: number;
  readonly memoryEverySteps: number;
  readonly histogramsEverySteps: number;
}
