import type { BlockState, FlatBlock, StateTensor } from "../parallel/index.ts";
import type { ActorRef } from "../runtime/index.ts";
import { emptyShared, hold, moveRef, scope, type Tensor, tagMemory } from "../tensor/index.ts";
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

/** What is copied of a block in one turn of the event loop: some half a millisecond. */
const ELEMENTS_A_TURN = 2 ** 20;

/**
 * The state after one step, on its way to the checkpointer: each block is copied when there is time, and at the latest
 * just before it is updated again, so that saving does not stop training.
 */
export class Snapshot {
  readonly #order: SnapshotOrder;
  readonly #blocks: Set<number>;
  /** Blocks that are being copied. */
  readonly #begun = new Map<number, BlockCopy>();

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

  /** Copies a block's state, which is bound, or what of it is not copied yet, and sends it, unless that has been done. */
  copy(state: BlockState): void {
    while (this.lacks(state.block)) this.copySome(state);
  }

  /** Copies as much of a block's state as one turn of the event loop should, and sends it once it is whole. */
  copySome(state: BlockState): void {
    if (!this.lacks(state.block)) return;
    const begun = this.#begun.get(state.block) ?? new BlockCopy(state);
    this.#begun.set(state.block, begun);
    if (!begun.advance(ELEMENTS_A_TURN)) return;
    this.#begun.delete(state.block);
    this.#blocks.delete(state.block);
    const { life, step, checkpointer } = this.#order;
    checkpointer.tell("part", {
      life,
      step: step + 1,
      state: begun.copies.map(({ kind, pieces, tensor }) => ({
        kind,
        pieces,
        ref: moveRef(tensor, sentTo(checkpointer)),
      })),
    });
  }

  /** Nobody wants it any more: what is copied of a block and not sent is given back. */
  dispose(): void {
    for (const begun of this.#begun.values()) begun.dispose();
    this.#begun.clear();
    this.#blocks.clear();
  }
}

/** A block's state while it is copied, stretch by stretch. */
class BlockCopy {
  readonly copies: readonly StateTensor[];
  readonly #sources: readonly Tensor[];
  #tensor = 0;
  #element = 0;

  constructor(state: BlockState) {
    const { tensors } = state;
    this.#sources = tensors.map(({ tensor }) => tensor);
    this.copies = tagMemory("snapshot", () =>
      tensors.map((each) => ({ ...each, tensor: hold(() => emptyShared([each.numel])) })),
    );
  }

  /** Copies so many elements more. @returns whether all are copied */
  advance(numElements: number): boolean {
    let left = numElements;
    for (;;) {
      const copy = this.copies[this.#tensor];
      if (copy === undefined) return true;
      if (left === 0) return false;
      const numel = Math.min(left, copy.numel - this.#element);
      const source = this.#sources[this.#tensor] as Tensor;
      // What a scope returns survives it: the views must not, or they hold the memory that the receiver frees.
      scope(() => {
        copy.tensor.narrow(0, this.#element, numel).copy_(source.narrow(0, this.#element, numel));
      });
      left -= numel;
      this.#element += numel;
      if (this.#element < copy.numel) continue;
      this.#tensor += 1;
      this.#element = 0;
    }
  }

  dispose(): void {
    for (const { tensor } of this.copies) tensor.dispose();
  }
}
