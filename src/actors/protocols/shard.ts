import type { OptimizerProgress } from "../../compute/optim/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { StepFinding } from "../../job/anomalies/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { InitialState } from "./initial-state.ts";
import type { HeldMemory, HistogramPart, InspectedPart, InspectedUpdate } from "./inspection.ts";
import type { OffloadProtocol } from "./offload.ts";
import type { PagingProtocol } from "./paging.ts";
import type { RelayProtocol } from "./relay.ts";
import type { ShardGroupProtocol } from "./shard-group.ts";
import type { ShardPlan } from "./shard-plan.ts";
import type { SnapshotProtocol } from "./snapshot.ts";
import type { UpdateShareProtocol } from "./update.ts";

/** Reply to `gather`. */
export interface Gathered {
  /** When the parameters were complete, in milliseconds of the process's clock. */
  readonly gatheredAtMs: number;
  /** The optimizers' progress before this step. */
  readonly progress: OptimizerProgress;
}

/** Reply to `join`. */
export interface Joined {
  /** The store of the collectives' groups, if this shard is the first of its host in a run of several: see `GroupPlan.stores`. */
  readonly store: string | undefined;
}

/** Steps count from 0; "the parameters of step s" have seen s updates. */
export type ShardProtocol = ShardGroupProtocol &
  PagingProtocol &
  UpdateShareProtocol &
  RelayProtocol & {
    /** Introduces every shard and every rank of the world, in rank order. If one of them ends, collectives are aborted. */
    join: {
      in: { peers: readonly ActorRef<ShardProtocol>[]; ranks: readonly ActorRef<unknown>[] };
      out: Joined;
    };
    /** Allocates and fills every block; answers with the buffers that the rank reads parameters from. */
    prepare: { in: ShardPlan; out: { fulls: readonly TensorRef[] } };
    /** Learning rates of a step and what to inspect in it; sent before its first gradient. */
    begin: { in: { step: number } & StepBegun };
    /**
     * Sent by the rank before backward when the frozen parameters differ from the step before's; answered once the
     * ranks that exchange activations with it have begun the step with the same ones frozen.
     */
    agree: { in: { step: number }; out: { agreed: true } };
    /** Sent by a peer: asks which parameters the rank has frozen in a step; answered once the rank has begun it. */
    frozen: { in: { step: number }; out: { frozen: readonly string[] } };
    /** Losses of the rank's forwards in a step; sent before its gradients. */
    scored: { in: { step: number } & StepScored };
    /** Answered once the block's parameters of `step` are complete. */
    gather: { in: { step: number; block: number }; out: Gathered };
    /** The rank no longer uses the gathered parameters of a block that is paged. */
    release: { in: { block: number } };
    /** A rank's flat gradient of a complete block; ownership of the tensor passes. */
    reduce: { in: { step: number; block: number; gradient: TensorRef } };
    /** Answered when every block has been updated for `step`; undefined where the rank's loop has returned before it. */
    finish: { in: { step: number }; out: StepUpdated | undefined };
    /** Puts a state in the place of the one before `step`, which no rank has begun; answered once it is that of `step + 1`. */
    take: { in: { step: number; initial: InitialState }; out: Record<string, never> };
    /** Copies the state after `step` to the checkpointer, each block before its next update. */
    snapshot: { in: { step: number; checkpointer: ActorRef<SnapshotProtocol> } };
    /** Answered once the snapshots ordered before are noted: no update overwrites those states before they are copied. */
    noted: { in: Record<string, never>; out: Record<string, never> };
    /** Sent by the rank: its loop has returned after `step` steps and makes no more. */
    left: { in: { step: number } };
  };

/** Arguments of a new shard. */
export interface ShardInit {
  readonly rank: number;
  /** Stores state that this shard offloads. */
  readonly offload: ActorRef<OffloadProtocol> | undefined;
}

/** Reply to `finish`. */
export interface StepUpdated {
  /** L2 norm of the averaged gradient before clipping. */
  readonly gradientNorm: number;
  /** Whether the step was skipped: nothing was updated. */
  readonly skipped: boolean;
  /** The anomaly in the step, if any; the same on all shards except for the block. */
  readonly finding: StepFinding | undefined;
  /** Factor that the step's loss was multiplied by; undefined where it is not scaled. */
  readonly lossScale: number | undefined;
  /** Time in which gradients were in flight between the ranks or being summed, in milliseconds. */
  readonly reduceMs: number;
  /** Time this shard spent on optimizer steps, in milliseconds. */
  readonly updateMs: number;
  /** This shard's share of the inspected parameters. */
  readonly inspected: readonly InspectedPart[];
  /** How this shard's updates moved the parameters whose movement is inspected. */
  readonly inspectedUpdates: readonly InspectedUpdate[];
  /** This shard's share of the histograms, where they were asked for. */
  readonly histograms: readonly HistogramPart[];
  /** Memory that its rank holds, where that was asked for. */
  readonly held: HeldMemory | undefined;
}

/** Losses of one rank's forwards in a step. */
export interface StepScored {
  /** Loss of each micro-batch, on ranks that report losses; on a device, which may still compute it, float64 [micro-batches]. */
  readonly lossesNats: readonly number[] | TensorRef;
  /** Names of parameters that the step does not train; left out where they are those of the step before. */
  readonly frozen?: readonly string[];
  /** Learning rates of every group, if the step begins before they are known. */
  readonly learningRates?: readonly number[];
  /** Micro-batches of all replicas, if a script decides how many there are. */
  readonly numMicroBatches?: number;
}

/** The start of a step: learning rates of every group, and what to inspect. */
export interface StepBegun {
  readonly learningRates: readonly number[];
  /** Patterns of names of parameters to inspect. */
  readonly inspect: readonly string[];
  /** Patterns of names of parameters whose movement is inspected. */
  readonly inspectUpdates: readonly string[];
  /** Whether to report the memory that is held. */
  readonly ledger: boolean;
  readonly histograms: boolean;
  /** Names of parameters that are frozen after the step's first forward; left out where they are those of the step before. */
  readonly frozen?: readonly string[];
}
