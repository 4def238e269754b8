import type { BlockStep } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { InspectedUpdate } from "./inspection.ts";

/** One block's update, as its shard orders it. */
export interface BlockUpdate extends BlockStep {
  readonly step: number;
  readonly block: number;
  /** Patterns of names of parameters whose movement is inspected. */
  readonly inspect: readonly string[];
}

/** A finished update. Plain data. */
export interface BlockUpdated {
  /** Time of the arithmetic, in milliseconds. */
  readonly updateMs: number;
  /** How the update moved the inspected parameters in the owned range. */
  readonly inspected: readonly InspectedUpdate[];
}

/** Requests from an offload actor to its shard during an update. */
export type UpdateShareProtocol = {
  /** The shard's share of a value that the update needs from all ranks; answered with the values of all, in rank order. */
  share: {
    in: { update: BlockUpdate; round: number; value: TensorRef };
    out: { values: readonly TensorRef[] };
  };
};
