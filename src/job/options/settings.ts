import type * as z from "zod";
import type { CarrierName } from "../../compute/collectives/index.ts";
import type { LossScaleRule } from "../../compute/optim/index.ts";
import type { MeshShape, ScheduleName, ZeroLevel } from "../../compute/parallel/index.ts";
import type { AutocastDType, Device, DType } from "../../compute/tensor/index.ts";
import type { AnomalyRules } from "../anomalies/index.ts";
import type { DashboardOptions, Precision } from "./options.generated.ts";
import type { runtimeSchema, shapes } from "./schema.ts";

/** Options that were read, with their defaults. */
export type Chosen = Readonly<z.output<typeof runtimeSchema>>;

/** A group of the schema. */
export type GroupName = keyof typeof shapes;

/** The options of one group. An option that leaves no choice reaches those who read it through this alone. */
export type Group<Name extends GroupName> = Pick<Chosen, keyof (typeof shapes)[Name] & keyof Chosen>;

/** Options with every choice made, by the group that declares them. Plain data: plans of actors carry these groups. */
export interface RuntimeSettings {
  readonly layout: LayoutSettings;
  readonly training: TrainingSettings;
  readonly precision: PrecisionSettings;
  readonly execution: ExecutionSettings;
  readonly offload: OffloadSettings;
  /** Undefined: nothing is saved. */
  readonly checkpoint: CheckpointSettings | undefined;
  readonly supervision: SupervisionSettings;
  readonly anomalies: AnomalyRules;
  readonly telemetry: TelemetrySettings;
  readonly dashboard: DashboardOptions | undefined;
}

/** How the ranks share the model and its batch. */
export interface LayoutSettings extends Omit<Group<"layout">, "tp" | "ep" | "pp" | "device" | "carrier"> {
  /** As asked for: checked against the model once that is known, before a rank is spawned. */
  readonly mesh: MeshShape;
  readonly schedule: ScheduleName;
  readonly zero: ZeroLevel;
  readonly carrier: CarrierName;
}

/** The part of a job's training that options decide. */
export interface TrainingSettings extends Group<"training"> {
  /** Whether an option gives the seed: else a resumed run keeps its checkpoint's. */
  readonly isSeedAsked: boolean;
}

/** Dtypes of a rank's computation. */
export interface PrecisionSettings extends Pick<Group<"precision">, "rounding"> {
  readonly name: Precision;
  /** Dtype of the parameters that the ranks compute with. */
  readonly weights: DType;
  /** Dtype that autocast casts to; undefined: no autocast. */
  readonly autocast: AutocastDType | undefined;
  readonly lossScale: LossScaleRule | undefined;
}

/** How a rank works through a step, without effect on the numbers. */
export interface ExecutionSettings extends Group<"execution">, Pick<Chosen, "deadlineMs" | "slowdown"> {
  /** The device of each rank, which its shard updates on too; all of one kind. */
  readonly devices: readonly Device[];
  readonly threadsPerRank: number;
}

/** Where offloaded state rests: in memory of the host, or in files on the disk of `directory`. */
export type OffloadHome = { readonly kind: "host" } | { readonly kind: "nvme"; readonly directory: string };

/** State, activations and parameters that are kept elsewhere than where they are used. */
export interface OffloadSettings {
  readonly optimizer:
    | {
        /** Share of the optimizer's state, from 0 to 1. */
        readonly ratio: number;
        readonly home: OffloadHome;
      }
    | undefined;
  /** Where recomputed blocks keep their inputs for backward. */
  readonly activations: OffloadHome | undefined;
  /** The parameters of blocks at level 3, between their uses: in files on the disk of a folder. */
  readonly parameters: { readonly directory: string } | undefined;
}

/** Which checkpoints are saved, when and where. Without `dir` only copies in memory are kept. */
export type CheckpointSettings = Readonly<NonNullable<Chosen["checkpoint"]>>;

/** When an actor, a process or a host counts as stuck or lost, and how often ranks may be started again. */
export interface SupervisionSettings extends Group<"supervision"> {
  readonly warmStandby: boolean;
}

/** Events that a run emits besides those of its steps. */
export interface TelemetrySettings extends Omit<Group<"telemetry">, "sinks"> {
  readonly traceEvery: number;
}
