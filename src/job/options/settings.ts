import type * as z from "zod";
import type { CarrierName } from "../../compute/collectives/index.ts";
import type { LossScaleRule } from "../../compute/optim/index.ts";
import type { MeshShape, ScheduleName, ZeroLevel } from "../../compute/parallel/index.ts";
import type { AutocastDType, Device, DType } from "../../compute/tensor/index.ts";
import type { AnomalyRules } from "../anomalies/index.ts";
import type { DashboardOptions, Precision } from "./options.generated.ts";
import type { runtimeSchema, shapes } from "./schema.ts";

/** Read options, completed by defaults. */
export type Chosen = Readonly<z.output<typeof runtimeSchema>>;

/** Name of a group of the schema. */
export type GroupName = keyof typeof shapes;

/** The options of one group. */
export type Group<Name extends GroupName> = Pick<Chosen, keyof (typeof shapes)[Name] & keyof Chosen>;

/** Options with all decisions made, by group. Plain data: plans of actors carry these groups. */
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
  /** As given; checked against the model before ranks are spawned. */
  readonly mesh: MeshShape;
  readonly schedule: ScheduleName;
  readonly zero: ZeroLevel;
  readonly carrier: CarrierName;
  /** The hosts that its ranks are spread over, by number. Default: all that are there. */
  readonly hosts?: readonly number[];
}

/** The part of a job's training that options decide. */
export interface TrainingSettings extends Group<"training"> {
  /** Whether the seed was given; if not, a resumed run keeps its checkpoint's. */
  readonly isSeedAsked: boolean;
}

/** Dtypes of a rank's computation. */
export interface PrecisionSettings extends Pick<Group<"precision">, "rounding" | "invariant"> {
  readonly name: Precision;
  /** Dtype of the parameters that the ranks compute with. */
  readonly weights: DType;
  /** Dtype that autocast casts to; undefined: no autocast. */
  readonly autocast: AutocastDType | undefined;
  readonly lossScale: LossScaleRule | undefined;
}

/** How a rank executes a step; the numbers do not depend on it. */
export interface ExecutionSettings extends Group<"execution">, Pick<Chosen, "deadlineMs" | "slowdown"> {
  /** The device of each rank and its shard, all of one kind. */
  readonly devices: readonly Device[];
  readonly threadsPerRank: number;
}

/** Where offloaded state is kept: in host memory, or in files in `directory`. */
export type OffloadHome = { readonly kind: "host" } | { readonly kind: "nvme"; readonly directory: string };

/** Where optimizer state, activations and parameters are offloaded to. */
export interface OffloadSettings {
  readonly optimizer:
    | {
        /** Share of the optimizer state, from 0 to 1. */
        readonly ratio: number;
        readonly home: OffloadHome;
      }
    | undefined;
  /** Where recomputed blocks keep their inputs until backward. */
  readonly activations: OffloadHome | undefined;
  /** Folder for the parameters of ZeRO-3 blocks between uses. */
  readonly parameters: { readonly directory: string } | undefined;
}

/** Which checkpoints are saved, when and where. Without `dir` there are only in-memory copies. */
export type CheckpointSettings = Readonly<NonNullable<Chosen["checkpoint"]>>;

/** When an actor, process or host counts as stuck or lost, and how often ranks may restart. */
export interface SupervisionSettings extends Group<"supervision"> {
  readonly warmStandby: boolean;
}

/** Events besides those of steps. */
export interface TelemetrySettings extends Omit<Group<"telemetry">, "sinks"> {
  readonly traceEvery: number;
}
