import type { BlockState, FlatBlock } from "../parallel/index.ts";
import type { ActorRef } from "../runtime/index.ts";
import { hold, moveRef, type Tensor, type TensorRef, tagMemory } from "../tensor/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import { sentTo } from "./recipient.ts";

/**
 * Whether a rank's shard sends its part of a block to the checkpointer: of several equal copies, one is saved.
 * @param rank - of the world
 */
export function sendsPart(layout: FlatBlock, rank: number): boolean {
  return layout.counted && (layout.zero > 0 || layout.group[0] === rank);
}

/** Who wants the state that follows a step, and of which blocks. Plain data. */
export interface SnapshotOrder {
  /** The step whose updates the state has seen. */
  readonly step: number;
  /** Life of the rank group. */
  readonly life: number;
  readonly checkpointer: ActorRef<CheckpointerProtocol>;
  readonly blocks: readonly number[];
}

/**
 * The state after one step, on its way to the checkpointer: each block is copied when there is time, and at the latest
 * just before it is updated again, so that saving does not stop training.
 */
export class Snapshot {
  readonly #order: SnapshotOrder;
  readonly #blocks: Set<number>;

  constructor(order: SnapshotOrder) {
    this.#order = order;
    this.#blocks = new Set(order.blocks);
  }

  /** The step whose updates the state has seen. */
  get step(): number {
    return this.#order.step;
  }

  /** Whether a block is to be copied and has not been. */
  lacks(block: number): boolean {
    return this.#blocks.has(block);
  }

  /** Copies a block's state, which is bound, and sends it, unless that has been done. */
  copy(state: BlockState): void {
    if (!this.#blocks.delete(state.block)) return;
    const { life, step, checkpointer } = this.#order;
    checkpointer.tell("part", {
      life,
      step: step + 1,
      state: state.tensors.map(({ kind, tensor, pieces }) => ({ kind, pieces, ref: this.#copyOf(tensor) })),
    });
  }

  #copyOf(tensor: Tensor): TensorRef {
    return tagMemory("snapshot", () =>
      moveRef(
        hold(() => tensor.clone()),
        sentTo(this.#order.checkpointer),
      ),
    );
  }
}
