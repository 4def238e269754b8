import type { BlockState } from "../../../compute/parallel/index.ts";
import { moveRef } from "../../../compute/tensor/index.ts";
import { systemClock } from "../../../runtime/index.ts";
import { type SnapshotOrder, sentTo } from "../../protocols/index.ts";
import { BlockCopy } from "./block-copy.ts";

/**
 * The state after one step, on its way to the checkpointer: each block is copied off-thread, at the latest just before its next
 * update, so that saving does not stop training.
 */
export class Snapshot {
  readonly #order: SnapshotOrder;
  readonly #blocks: Set<number>;
  readonly #begun = new Map<number, Promise<BlockCopy>>();
  /** How long updates were held up; not sent yet. */
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

  /** Whether a block's copy is still incomplete. */
  lacks(block: number): boolean {
    return this.#blocks.has(block);
  }

  /** Copies a block's bound state in a thread of lower priority and sends it, unless that is done. */
  async copyOffThread(state: BlockState): Promise<void> {
    while (this.lacks(state.block)) {
      const copy = await this.#copyOf(state);
      if (copy.isTaken || !this.lacks(state.block)) break;
      await copy.advance();
    }
    await this.copy(state);
  }

  /** Completes and sends the copy of a block's bound state: stretches not begun are copied now, which blocks training. */
  async copy(state: BlockState): Promise<void> {
    if (!this.lacks(state.block)) return;
    const beginMs = systemClock.now();
    const copy = await this.#copyOf(state);
    if (!this.lacks(state.block)) return;
    await copy.finish();
    this.#blockedMs += systemClock.now() - beginMs;
    this.#send(state.block, copy);
  }

  dispose(): void {
    for (const begun of this.#begun.values())
      begun.then(
        (copy) => copy.dispose(),
        () => {}, // delivered to the waiters
      );
    this.#begun.clear();
    this.#blocks.clear();
  }

  #copyOf(state: BlockState): Promise<BlockCopy> {
    const begun = this.#begun.get(state.block) ?? BlockCopy.of(state);
    this.#begun.set(state.block, begun);
    return begun;
  }

  /** The first to find a block's copy complete sends it. */
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
