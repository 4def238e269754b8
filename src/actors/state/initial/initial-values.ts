import type { BlockState } from "../../../compute/parallel/index.ts";

/** The values of a run's beginning, at hand block by block. */
export interface InitialValues extends AsyncDisposable {
  /** Fills a block's state, which is bound, and publishes its parameters, reading only what is owned. */
  fill(state: BlockState): Promise<void>;
}
