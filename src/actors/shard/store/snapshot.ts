import type { BlockState } from "../../../compute/parallel/index.ts";
import { moveRef } from "../../../compute/tensor/index.ts";
import { systemClock } from "../../../runtime/index.ts";
import { type SnapshotOrder, sentTo } from "../../protocols/index.ts";
import { BlockCopy } from "./block-copy.ts";

/**
 * The state after one step, on its way to the checkpointer: each block is copied beside the event loop, and at the latest
 * just before it is updated again, so that saving does not stop training.
 */
export class Snapshot {
  readonly #order: SnapshotOrder;
  readonly #blocks: Set<number>;
  /** Blocks that are being copied. */
  readonly #begun = new Map<number, Promise<BlockCopy>>();
  /** Not sent yet: how long updates were held up. */
  #blockedMs = 0;

  constructor(order: SnapshotOrder) {
    this.#order = order;
    this.#blocks = new Set(order.blocks);
  }

  /** The step whose updates the state has seen. */
  get step(): number {
    return this.#order.step;
  }

  /** Whether every block is copied and sent. */
  get isDone(): boolean {
    return this.#blocks.size === 0;
  }

  /** Whether a block is to be copied and is not whole yet. */
  lacks(block: number): boolean {
    return this.#blocks.has(block);
  }

  /** Copies a block's state, which is bound, in a thread that gives way to others, and sends it, unless that has been done. */
  async copyOffThread(state: BlockState): Promise<void> {
    while (this.lacks(state.block)) {
      const copy = await this.#copyOf(state);
      if (copy.isTaken || !this.lacks(state.block)) break;
      await copy.advance();
    }
    await this.copy(state);
  }

  /**
   * Has a block's state copied, which is bound, and sent, unless that has been done: what has not been begun by now is copied
   * in this turn. What that takes is told as time for which training was blocked.
   */
  async copy(state: BlockState): Promise<void> {
    if (!this.lacks(state.block)) return;
    const beginMs = systemClock.now();
    const copy = await this.#copyOf(state);
    if (!this.lacks(state.block)) return;
    await copy.finish();
    this.#blockedMs += systemClock.now() - beginMs;
    this.#send(state.block, copy);
  }

  /** Nobody wants it any more: what is copied of a block and not sent is given back. */
  dispose(): void {
    for (const begun of this.#begun.values()) {
      begun.then(
        (copy) => copy.dispose(),
        () => {}, // told to who waits for it
      );
    }
    this.#begun.clear();
    this.#blocks.clear();
  }

  #copyOf(state: BlockState): Promise<BlockCopy> {
    const begun = this.#begun.get(state.block) ?? BlockCopy.of(state);
    this.#begun.set(state.block, begun);
    return begun;
  }

  /** Whoever finds a block's copy whole first sends it. */
  #send(block: number, { copies }: BlockCopy): void {
    if (!this.#blocks.delete(block)) return;
    this.#begun.delete(block);
    const { generation, step, rank, checkpointer } = this.#order;
    const blockedMs = this.#blockedMs;
    this.#blockedMs = 0;
    checkpointer.tell("part", {
      generation,
      step: step + 1,
      rank,
      blockedMs,
      state: copies.map(({ kind, pieces, tensor }) => ({
        kind,
        pieces,
        ref: moveRef(tensor, sentTo(checkpointer)),
      })),
    });
  }
}
