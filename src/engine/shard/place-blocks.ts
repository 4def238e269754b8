import type { Gathered } from "../../collectives/index.ts";
import type { PagingPlan } from "../../offload/index.ts";
import { type FlatBlock, memberOf, ShardStore } from "../../parallel/index.ts";
import type { ShardPlan } from "../../protocols/index.ts";
import { systemClock } from "../../runtime/index.ts";
import type { ShardPaging } from "../../state/paging/index.ts";
import { Turns } from "../../state/store/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import { sliceFor } from "./shard-group.ts";
import type { ShardGroups } from "./shard-groups.ts";

/** What places a shard's parameters in memory. */
export interface PlacingShard {
  readonly rank: number;
  readonly groups: ShardGroups;
  /** Of the paged parameters; takes those over that are made here. */
  readonly paging: ShardPaging;
  /** Told of every way from and to the file, where the run is traced. */
  readonly onTransfer: NonNullable<PagingPlan["onTransfer"]>;
}

/** A shard's parameters, as zeros. */
export interface PlacedBlocks {
  readonly store: ShardStore;
  /** By block, the owned range of the whole parameters, writable; the caller's. */
  readonly owned: readonly Tensor[];
}

/** Makes memory for the parameters of every block, or takes it from the member of the block's group that makes it. */
export async function placeBlocks(plan: ShardPlan, shard: PlacingShard): Promise<PlacedBlocks> {
  const store = new ShardStore(shard.rank, plan.precision.weights);
  const owned: Tensor[] = [];
  const memories = new Map<number, Tensor>();
  for (const layout of plan.layouts) owned.push(await place(layout, store, shard, memories));
  const { parameters } = plan.offload;
  if (parameters === undefined) return { store, owned };
  const { transferMs } = plan.execution.slowdown;
  const turns = new Turns(transferMs);
  shard.paging.hold(memories, {
    directory: parameters.directory,
    windowBytes: parameters.windowBytes,
    now: () => systemClock.now(),
    ...(transferMs > 0 && { delay: () => turns.next() }),
    ...(plan.telemetry.trace && { onTransfer: shard.onTransfer }),
  });
  return { store, owned };
}

/**
 * A block's buffer for whole parameters. Where the block is split and its ranks share memory, the first member of its group
 * makes one for all and gives each its slice to write; all read the whole. Elsewhere, and at level 0, each rank makes its own.
 * @param memories - gets what is made here and paged, by block
 * @returns the owned range of it, writable; the caller's
 */
async function place(
  layout: FlatBlock,
  store: ShardStore,
  { rank, groups, paging }: PlacingShard,
  memories: Map<number, Tensor>,
): Promise<Tensor> {
  const group = groups.of(layout.group);
  if (layout.zero > 0 && !group.sharesMemory) {
    const full = store.allocateFull(layout);
    const gathered = gatheredOf(layout, full, memberOf(layout, rank));
    store.add(layout, full, gathered);
    return sliceFor(layout, full, rank);
  }
  if (layout.zero > 0 && memberOf(layout, rank) > 0) {
    const { full, slice } = await group.given(layout.name);
    store.add(layout, full);
    return slice;
  }
  const full = allocate(layout, store, paging, memories);
  const slice = sliceFor(layout, full, rank);
  if (layout.zero > 0) group.give(layout, full);
  store.add(layout, full);
  return slice;
}

/** A rank's own buffer for whole parameters, cut before anybody reads it: its members' slices stay writable. */
function gatheredOf(layout: FlatBlock, full: Tensor, member: number): Gathered {
  const slices = layout.group.map((rank) => sliceFor(layout, full, rank));
  return {
    own: slices[member] as Tensor,
    others: slices.map((slice, of) => (of === member ? undefined : slice)),
  };
}

function allocate(
  layout: FlatBlock,
  store: ShardStore,
  paging: ShardPaging,
  memories: Map<number, Tensor>,
): Tensor {
  if (!paging.isPaged(layout)) return store.allocateFull(layout);
  const { full, memory } = store.allocatePaged(layout);
  memories.set(layout.index, memory);
  return full;
}
