import { type Access, type PagedBlock, PagedBlocks, type PagingPlan } from "../../offload/index.ts";
import type { FlatBlock } from "../../parallel/index.ts";
import type { BlockUse, PresenceProtocol, ShardPlan } from "../../protocols/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import { AskedPresence, type Presence } from "./presence.ts";

/** Of the blocks that come and go, a shard holds those of which its rank is the first, and asks for the others. */
export class BlockPresence implements Presence {
  readonly #rank: number;
  readonly #byName: ReadonlyMap<string, FlatBlock>;
  readonly #askedAt: (rank: number) => AskedPresence;
  /** Peers may ask before all memory is made. */
  readonly #held = Promise.withResolvers<PagedBlocks>();
  #holder: PagedBlocks | undefined;

  /** @param peers - every shard of the world, in rank order */
  constructor(
    rank: number,
    { layouts, parametersAway, deadlineMs }: ShardPlan,
    peers: readonly ActorRef<PresenceProtocol>[],
  ) {
    this.#rank = rank;
    const away = layouts.filter(({ index }) => parametersAway?.blocks.includes(index));
    this.#byName = new Map(away.map((layout) => [layout.name, layout]));
    const names = [...this.#byName.keys()];
    this.#askedAt = (holder) =>
      new AskedPresence(peers[holder] as ActorRef<PresenceProtocol>, names, deadlineMs);
    this.#held.promise.catch(() => {});
  }

  /**
   * Gives the memory of the blocks that this shard holds up, until somebody enters.
   * @param memories - by index of the block, of `emptyPaged`; ownership passes
   * @throws {TroupeError} `SCRATCH_FILE`
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

  comesAndGoes({ name }: FlatBlock): boolean {
    return this.#byName.has(name);
  }

  async enter(layout: FlatBlock, access: Access): Promise<void> {
    const holder = layout.group[0] as number;
    if (holder !== this.#rank) return this.#askedAt(holder).enter(layout, access);
    const held = this.#holder ?? (await this.#held.promise);
    await held.enter(layout.index, access);
  }

  leave(layout: FlatBlock, access: Access): void {
    const holder = layout.group[0] as number;
    if (holder === this.#rank) this.#holder?.leave(layout.index, access);
    else this.#askedAt(holder).leave(layout, access);
  }

  /** Another actor's use, see {@link PresenceProtocol}. */
  async enterFor({ block, access }: BlockUse): Promise<{ entered: true }> {
    await this.enter(this.#at(block), access);
    return { entered: true };
  }

  leaveFor({ block, access }: BlockUse): void {
    this.leave(this.#at(block), access);
  }

  /** Whoever waits for a block, now or later, gets `reason`. */
  abort(reason: Error): void {
    this.#held.reject(reason);
    this.#holder?.abort(reason);
  }

  dispose(): void {
    this.#holder?.dispose();
  }

  #at(name: string): FlatBlock {
    const layout = this.#byName.get(name);
    if (layout === undefined) throw new RangeError(`[shard] block ${name} does not come and go`);
    return layout;
  }
}
