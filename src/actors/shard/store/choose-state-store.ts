import { updateRuleOf } from "../../../compute/optim/index.ts";
import { BlockState, type FlatBlock, keepsState, offloadedBlocks } from "../../../compute/parallel/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import {
  type OffloadProtocol,
  progressIn,
  type ShardPlan,
  type ShardProtocol,
} from "../../protocols/index.ts";
import type { ParameterPaging } from "../../state/paging/index.ts";
import { remoteStateStore } from "./remote-state-store.ts";
import {
  MemoryStateStore,
  type OptimizerStateStore,
  type ShareWithRanks,
  splitStateStore,
} from "./state-store.ts";

/** The parts of a shard that its stores of optimizer state need. */
export interface StateStorePlace {
  readonly rank: number;
  readonly shard: ActorRef<ShardProtocol>;
  /** Where the shard may offload state. */
  readonly offload: ActorRef<OffloadProtocol> | undefined;
  readonly share: ShareWithRanks;
  readonly paging: ParameterPaging;
}

/** @param owned - of each block's parameters, writable; ownership passes @returns the store by the plan, or both, split */
export function stateStoreOf(
  plan: ShardPlan,
  owned: readonly Tensor[],
  place: StateStorePlace,
): OptimizerStateStore {
  const { peers, layouts, optimizers, execution, telemetry } = plan;
  const { optimizer: offload } = plan.offload;
  const { rank, shard, share, paging } = place;
  const blocksAway = offload === undefined ? [] : offloadedBlocks(layouts, offload.ratio);
  const isAway = (layout: FlatBlock) => blocksAway.includes(layout.index);
  const rules = optimizers.map(updateRuleOf);
  const progress = progressIn(plan.initial);
  const states = layouts.flatMap((layout, index) =>
    isAway(layout)
      ? []
      : new BlockState(layout, rank, rules, owned[index] as Tensor, keepsState(layout, progress)),
  );
  const here = new MemoryStateStore(states, share, paging);
  if (offload === undefined || place.offload === undefined) return here;
  const layoutsAway = layouts.filter(isAway);
  const ownedAway = owned.filter((_, index) => isAway(layouts[index] as FlatBlock));
  const away = remoteStateStore(
    place.offload,
    {
      run: peers.groups.run,
      rank,
      layouts: layoutsAway,
      optimizers,
      home: offload.home,
      shard,
      numThreads: execution.threadsPerRank,
      deadlineMs: execution.deadlineMs,
      paged: layoutsAway.flatMap((layout) => (paging.isPaged(layout) ? layout.name : [])),
      delayMs: execution.slowdown.updateMs,
      trace: telemetry.trace,
    },
    ownedAway,
  );
  return splitStateStore([away, here], (block) => (blocksAway.includes(block) ? away : here));
}
