import type { Gathered } from "../../compute/collectives/index.ts";
import type { PagingPlan } from "../../compute/offload/index.ts";
import { type FlatBlock, ShardStore } from "../../compute/parallel/index.ts";
import { hold, type Tensor } from "../../compute/tensor/index.ts";
import { systemClock } from "../../runtime/index.ts";
import type { ShardPlan } from "../protocols/index.ts";
import type { ShardPaging } from "../state/paging/index.ts";
import { sliceFor } from "./group/shard-group.ts";
import type { ShardGroups } from "./group/shard-groups.ts";
import { Turns } from "./store/index.ts";

/** The parts of a shard that {@link placeBlocks} needs. */
export interface PlacingShard {
  readonly rank: number;
  readonly groups: ShardGroups;
  /** Paging of the parameters; takes ownership of those that are made here. */
  readonly paging: ShardPaging;
  /** Called for every transfer to and from the file, if the run is traced. */
  readonly onTransfer: NonNullable<PagingPlan["onTransfer"]>;
}

/** A shard's parameters, as zeros. */
export interface PlacedBlocks {
  readonly store: ShardStore;
  /** By block, the owned range of the gathered parameters, writable; the caller's. */
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
 * Places a block's buffer for gathered parameters: one of all ranks that share memory, each with its slice to write; at level 0
 * each rank's own.
 * @param memories - receives the paged memory made here, by block @returns the owned range, writable; the caller's
 */
async function place(
  layout: FlatBlock,
  store: ShardStore,
  { rank, groups, paging }: PlacingShard,
  memories: Map<number, Tensor>,
): Promise<Tensor> {
  const group = groups.of(layout.group);
  const { neighbours } = group;
  const cut = (full: Tensor) => sliceFor(layout, full, rank);
  if (layout.zero > 0 && rank !== neighbours[0]) {
    const { full, slice } = await groups.of(neighbours).given(layout.name);
    store.add(layout, full, group.sharesMemory ? undefined : { own: hold(() => slice.alias()), others: [] });
    return slice;
  }
  const full = allocate(layout, store, paging, memories);
  const slice = cut(full);
  // Cut before anyone reads the buffer: the writable slices stay writable.
  const gathered =
    layout.zero === 0 || group.sharesMemory
      ? undefined
      : { own: cut(full), others: slicesFromElsewhere(layout, full, neighbours) };
  if (layout.zero > 0) groups.of(neighbours).give(layout, full);
  store.add(layout, full, gathered);
  return slice;
}

/** @returns the slices of a rank's buffer for gathered parameters, by member, of those that do not write there themselves */
function slicesFromElsewhere(
  layout: FlatBlock,
  full: Tensor,
  neighbours: readonly number[],
): Gathered["others"] {
  return layout.group.map((rank) => (neighbours.includes(rank) ? undefined : sliceFor(layout, full, rank)));
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
