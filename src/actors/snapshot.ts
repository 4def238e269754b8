import type { ShardStore } from "../parallel/index.ts";
import type { ActorRef } from "../runtime/index.ts";
import { hold, moveRef, type Tensor, type TensorRef, tagMemory } from "../tensor/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import { sentTo } from "./recipient.ts";

/**
 * A shard's state after one step, on its way to the checkpointer: each block is copied when there is time, and at the
 * latest just before it is updated again, so that saving does not stop training.
 */
export class Snapshot {
  /** The step whose updates the state has seen. */
  readonly step: number;
  readonly #life: number;
  readonly #checkpointer: ActorRef<CheckpointerProtocol>;
  readonly #blocks: Set<number>;

  /** @param blocks - those that this shard is to send */
  constructor(
    step: number,
    life: number,
    checkpointer: ActorRef<CheckpointerProtocol>,
    blocks: Iterable<number>,
  ) {
    this.step = step;
    this.#life = life;
    this.#checkpointer = checkpointer;
    this.#blocks = new Set(blocks);
  }

  /** Blocks not copied yet. */
  get pending(): Iterable<number> {
    return this.#blocks;
  }

  /** Copies a block and sends it, unless that has been done. */
  copy(store: ShardStore, block: number): void {
    if (!this.#blocks.delete(block)) return;
    this.#checkpointer.tell("part", {
      life: this.#life,
      step: this.step + 1,
      state: store
        .state(block)
        .map(({ kind, tensor, pieces }) => ({ kind, pieces, ref: this.#copyOf(tensor) })),
    });
  }

  #copyOf(tensor: Tensor): TensorRef {
    return tagMemory("snapshot", () =>
      moveRef(
        hold(() => tensor.clone()),
        sentTo(this.#checkpointer),
      ),
    );
  }
}
