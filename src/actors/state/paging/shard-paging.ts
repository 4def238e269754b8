import {
  type Access,
  type PagedBlock,
  PagedBlocks,
  type PagingPlan,
} from "../../../compute/offload/index.ts";
import type { FlatBlock } from "../../../compute/parallel/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import type { PagingProtocol, PinRequest, ShardPlan } from "../../protocols/index.ts";
import { type ParameterPaging, remotePaging } from "./parameter-paging.ts";

/** A shard's paging: it holds the paged blocks of which its rank is the first, and asks the holders of the others. */
export class ShardPaging implements ParameterPaging {
  readonly #rank: number;
  readonly #byName: ReadonlyMap<string, FlatBlock>;
  readonly #askedAt: (rank: number) => ParameterPaging;
  /** Peers may ask before all memory is made. */
  readonly #held = Promise.withResolvers<PagedBlocks>();
  #holder: PagedBlocks | undefined;

  /** @param peers - every shard of the world, in rank order */
  constructor(
    rank: number,
    { layouts, offload, execution }: ShardPlan,
    peers: readonly ActorRef<PagingProtocol>[],
  ) {
    this.#rank = rank;
    const paged = layouts.filter(({ index }) => offload.parameters?.blocks.includes(index));
    this.#byName = new Map(paged.map((layout) => [layout.name, layout]));
    const names = [...this.#byName.keys()];
    this.#askedAt = (holder) =>
      remotePaging(peers[holder] as ActorRef<PagingProtocol>, names, execution.deadlineMs);
    this.#held.promise.catch(() => {});
  }

  /**
   * Gives up the memory of the blocks that this shard holds until they are pinned. @throws {TroupeError} `SCRATCH_FILE`
   * @param memories - by index of the block, of `emptyPaged`; ownership passes
   */
  hold(memories: ReadonlyMap<number, Tensor>, plan: PagingPlan): void {
    if (memories.size === 0) return;
    const blocks = new Map<number, PagedBlock>();
    for (const { index, group } of this.#byName.values()) {
      const memory = memories.get(index);
      if (memory !== undefined) blocks.set(index, { memory, numChangers: group.length });
    }
    this.#holder = new PagedBlocks(blocks, plan);
    this.#held.resolve(this.#holder);
  }

  isPaged({ name }: FlatBlock): boolean {
    return this.#byName.has(name);
  }

  async pin(layout: FlatBlock, access: Access): Promise<void> {
    const holder = layout.group[0] as number;
    if (holder !== this.#rank) return this.#askedAt(holder).pin(layout, access);
    const held = this.#holder ?? (await this.#held.promise);
    await held.pin(layout.index, access);
  }

  unpin(layout: FlatBlock, access: Access): void {
    const holder = layout.group[0] as number;
    if (holder === this.#rank) this.#holder?.unpin(layout.index, access);
    else this.#askedAt(holder).unpin(layout, access);
  }

  /** Another actor's use, see {@link PagingProtocol}. */
  async pinFor({ block, access }: PinRequest): Promise<{ pinned: true }> {
    await this.pin(this.#at(block), access);
    return { pinned: true };
  }

  unpinFor({ block, access }: PinRequest): void {
    this.unpin(this.#at(block), access);
  }

  /** Rejects all waits for blocks, present and future, with `reason`. */
  abort(reason: Error): void {
    this.#held.reject(reason);
    this.#holder?.abort(reason);
  }

  dispose(): void {
    this.#holder?.dispose();
  }

  #at(name: string): FlatBlock {
    const layout = this.#byName.get(name);
    if (layout === undefined) throw new RangeError(`[shard] block ${name} is not paged`);
    return layout;
  }
}
