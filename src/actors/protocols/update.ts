import type { BlockStep } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { InspectedUpdate } from "./inspection.ts";

/** One block's update, as a shard orders it. */
export interface BlockUpdate extends BlockStep {
  readonly step: number;
  readonly block: number;
  /** Patterns of the parameters whose movement is looked at. */
  readonly inspect: readonly string[];
}

/** One update made. Plain data. */
export interface BlockUpdated {
  /** Time of the arithmetic, in milliseconds. */
  readonly updateMs: number;
  /** How parameters of the owned range were moved, of those that were to be looked at. */
  readonly inspected: readonly InspectedUpdate[];
}

/** What an offload actor asks of its shard while it makes an update. */
export type UpdateShareProtocol = {
  /** Its share of what the update wants of all ranks; answered with all of them, in rank order. */
  share: {
    in: { update: BlockUpdate; round: number; value: TensorRef };
    out: { values: readonly TensorRef[] };
  };
};
