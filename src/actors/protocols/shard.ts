import type { OptimizerProgress } from "../../compute/optim/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { StepFinding } from "../../job/anomalies/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { HeldMemory, HistogramPart, InspectedPart, InspectedUpdate } from "./inspection.ts";
import type { OffloadProtocol } from "./offload.ts";
import type { PagingProtocol } from "./paging.ts";
import type { RelayProtocol } from "./relay.ts";
import type { ShardGroupProtocol } from "./shard-group.ts";
import type { ShardPlan } from "./shard-plan.ts";
import type { SnapshotProtocol } from "./snapshot.ts";
import type { UpdateShareProtocol } from "./update.ts";

/** Answer to a gather. */
export interface Gathered {
  /** When the parameters were whole, in milliseconds of the process's clock. */
  readonly gatheredAtMs: number;
  /** How far the optimizer has come before this step. */
  readonly progress: OptimizerProgress;
}

/** Answer to who there is. */
export interface Joined {
  /** Where groups meet in a store that this shard keeps, as the first of a host in a run of several: see `GroupPlan.stores`. */
  readonly store: string | undefined;
}

/** Steps count from 0; "the parameters of step s" have seen s updates. */
export type ShardProtocol = ShardGroupProtocol &
  PagingProtocol &
  UpdateShareProtocol &
  RelayProtocol & {
    /** Who there is: every shard and every rank of the world, in rank order. The end of any aborts collectives. */
    join: {
      in: { peers: readonly ActorRef<ShardProtocol>[]; ranks: readonly ActorRef<unknown>[] };
      out: Joined;
    };
    /** Allocates and fills every block; answers with the buffers the rank reads parameters from. */
    prepare: { in: ShardPlan; out: { fulls: readonly TensorRef[] } };
    /** Learning rates of a step, and what it is inspected for; sent before its first gradient. */
    begin: { in: { step: number } & StepBegun };
    /**
     * Asked by the rank before it walks a step backwards of which other parameters are frozen than of the step before: answered
     * once those that exchange activations with it have begun the step with the same ones frozen.
     */
    agree: { in: { step: number }; out: { agreed: true } };
    /** By a peer: what the rank has frozen in a step, once it has begun it. */
    frozen: { in: { step: number }; out: { frozen: readonly string[] } };
    /** What the rank's forwards of a step came to; sent before its gradients. */
    scored: { in: { step: number } & StepScored };
    /** Answered once the block's parameters of `step` are whole. */
    gather: { in: { step: number; block: number }; out: Gathered };
    /** The rank gives up what it has gathered of a block whose parameters are offloaded. */
    release: { in: { block: number } };
    /** A rank's flat gradient of a whole block; ownership of the tensor passes. */
    reduce: { in: { step: number; block: number; gradient: TensorRef } };
    /** Answered when every block has been updated for `step`, or with undefined where the rank's loop has returned before it. */
    finish: { in: { step: number }; out: StepUpdated | undefined };
    /** Copies the state that follows `step` to the checkpointer, each block before its next update. */
    snapshot: { in: { step: number; checkpointer: ActorRef<SnapshotProtocol> } };
    /** Answered once the snapshots ordered before are noted: no update overwrites those states before they are copied. */
    noted: { in: Record<string, never>; out: Record<string, never> };
    /** From the rank: its loop has returned after `step` steps, and makes no more. */
    left: { in: { step: number } };
  };

/** What a shard is born with. */
export interface ShardInit {
  readonly rank: number;
  /** Where this shard may leave state. */
  readonly offload: ActorRef<OffloadProtocol> | undefined;
}

/** What a step's end looked like from the shard. */
export interface StepUpdated {
  /** L2 norm of the averaged gradient before clipping. */
  readonly gradientNorm: number;
  /** Whether the step was left out, and nothing was updated. */
  readonly skipped: boolean;
  /** What is wrong with the step, the same on all shards but for the block. */
  readonly finding: StepFinding | undefined;
  /** What the loss of this step was multiplied by; none where it is not scaled. */
  readonly lossScale: number | undefined;
  /** Time in which gradients were under way between the ranks or being summed, in milliseconds. */
  readonly reduceMs: number;
  /** Time this shard spent on optimizer steps, in milliseconds. */
  readonly updateMs: number;
  /** This shard's share of the parameters that were to be looked at. */
  readonly inspected: readonly InspectedPart[];
  /** How this shard has moved the parameters whose movement was to be looked at. */
  readonly inspectedUpdates: readonly InspectedUpdate[];
  /** This shard's share of the histograms, where they were asked for. */
  readonly histograms: readonly HistogramPart[];
  /** What its rank holds, where that was asked. */
  readonly held: HeldMemory | undefined;
}

/** What one rank's forwards of a step came to. */
export interface StepScored {
  /** Of its micro-batches, where it tells them; of a device, which has still to compute them, float64 [micro-batches]. */
  readonly lossesNats: readonly number[] | TensorRef;
  /** Names of the model's parameters that the step does not train; left out where they are those of the step before. */
  readonly frozen?: readonly string[];
}

/** What a step is begun with: learning rates of every group, and what it is to be looked at for. */
export interface StepBegun {
  readonly learningRates: readonly number[];
  /** Patterns of parameters' names. */
  readonly inspect: readonly string[];
  /** The same, of those whose movement is looked at. */
  readonly inspectUpdates: readonly string[];
  /** Whether to look at the memory that is held. */
  readonly ledger: boolean;
  readonly histograms: boolean;
  /** Names of the model's parameters that are frozen after its first forward; left out where they are those of the step before. */
  readonly frozen?: readonly string[];
}
