import { reportActivity } from "../../inspect/index.ts";
import type { FlatBlock, ShardStore } from "../../parallel/index.ts";
import type { BlockUpdate, OffloadProtocol, ShardPlan, ShardProtocol } from "../../protocols/index.ts";
import type { ActorContext, ActorRef } from "../../runtime/index.ts";
import type { ShardPaging } from "../../state/paging/index.ts";
import {
  type OptimizerStateStore,
  type ShareWithRanks,
  stateStoreOf,
  Turns,
} from "../../state/store/index.ts";
import { GradientAgreement } from "./gradient-agreement.ts";
import type { LocalGroups } from "./local-groups.ts";
import { OptimizerClock } from "./optimizer-clock.ts";
import { placeBlocks } from "./place-blocks.ts";
import { ShardUpdates } from "./shard-updates.ts";

/** What a shard works with once it is prepared. */
export interface PreparedShard {
  readonly plan: ShardPlan;
  readonly store: ShardStore;
  readonly stateStore: OptimizerStateStore;
  readonly agreement: GradientAgreement;
  readonly clock: OptimizerClock;
  readonly updates: ShardUpdates;
  /** In which reductions end, where each is put off on purpose. */
  readonly delayed: Turns | undefined;
  /** The flat blocks that are reduced and updated. */
  readonly trained: readonly FlatBlock[];
}

/** The shard that is prepared, and whom it knows. */
export interface ShardPlace {
  readonly rank: number;
  readonly context: ActorContext<ShardProtocol>;
  readonly offload: ActorRef<OffloadProtocol> | undefined;
  readonly groups: LocalGroups;
  readonly paging: ShardPaging;
  readonly share: ShareWithRanks;
  /** The last step that has begun. */
  readonly step: () => number;
}

/** Makes the memory of every block and of the state, all still to be filled. */
export async function prepareShard(plan: ShardPlan, place: ShardPlace): Promise<PreparedShard> {
  const { rank, context, offload, groups, paging, share } = place;
  const { store, owned } = await placeBlocks(plan, {
    rank,
    groups,
    paging,
    onTransfer: (block, direction, beginMs) =>
      reportActivity(context, direction, { step: place.step(), block }, beginMs),
  });
  const stateStore = stateStoreOf(plan, owned, { rank, shard: context.self, offload, share, paging });
  const clock = new OptimizerClock(plan);
  const onUpdate = (update: BlockUpdate, beginMs: number) => {
    if (plan.trace) reportActivity(context, "update", update, beginMs);
  };
  return {
    plan,
    store,
    stateStore,
    agreement: new GradientAgreement(plan, store, groups),
    clock,
    updates: new ShardUpdates({ plan, store, stateStore, clock, paging, onUpdate }),
    delayed: plan.slowdown.reduceMs > 0 ? new Turns(plan.slowdown.reduceMs) : undefined,
    trained: plan.layouts.filter((layout) => layout.trainable),
  };
}
