import type { Access } from "../../offload/index.ts";
import { type FlatBlock, offloadedBlocks, type ShardStore } from "../../parallel/index.ts";
import type { BlockUpdate, ShardPlan } from "../../protocols/index.ts";
import { systemClock } from "../../runtime/index.ts";
import { type ParameterPaging, whilePinned } from "../../state/paging/index.ts";
import type { OptimizerStateStore } from "../../state/store/index.ts";
import type { ClipFactors } from "./gradient-agreement.ts";
import type { OptimizerClock } from "./optimizer-clock.ts";
import type { ShardStep } from "./shard-step.ts";

/** What updates work with. */
export interface UpdatingShard {
  readonly plan: ShardPlan;
  readonly store: ShardStore;
  readonly stateStore: OptimizerStateStore;
  readonly clock: OptimizerClock;
  readonly paging: ParameterPaging;
  /** Told of every update made, with when it began, in milliseconds of the process's clock. */
  readonly onUpdate: (update: BlockUpdate, beginMs: number) => void;
}

/** One shard's optimizer steps, block by block. */
export class ShardUpdates {
  readonly #shard: UpdatingShard;
  readonly #access: Access;

  constructor(shard: UpdatingShard) {
    this.#shard = shard;
    this.#access = accessOf(shard.plan);
  }

  /** Where all updates begin at once: first those that others make meanwhile, then this shard's, in forward order. */
  get order(): number[] {
    const { layouts, offload } = this.#shard.plan;
    const away = offload === undefined ? [] : offloadedBlocks(layouts, offload.ratio);
    const trained = layouts.filter((layout) => layout.trainable);
    return [...away, ...trained.flatMap(({ index }) => (away.includes(index) ? [] : index))];
  }

  /** @returns fulfilled once this shard's range of the block is updated by the step's gradient, which is gone then */
  async make(step: number, block: number, { all, own }: ClipFactors, progress: ShardStep): Promise<void> {
    const { plan, store, stateStore, clock, paging, onUpdate } = this.#shard;
    const divisor = clock.divisor(step);
    if (plan.clip?.by === "value") store.clampGradient(block, plan.clip.max * divisor);
    const update = {
      step,
      block,
      updateIndex: clock.before(step).numUpdates + 1,
      learningRates: progress.learningRates,
      gradientScale: all / divisor,
      inspect: progress.inspectUpdates,
      ...(own === undefined ? {} : { ownScales: own.map((factor) => factor && factor / divisor) }),
    };
    await whilePinned(paging, plan.layouts[block] as FlatBlock, this.#access, async () => {
      const beginMs = systemClock.now();
      progress.updated(await stateStore.update(update, store.takeGradient(block)));
      onUpdate(update, beginMs);
    });
  }
}

/** Where masters are kept apart and rounded to the nearest, an update needs nothing of what the ranks have read. */
function accessOf({ dtype, optimizers }: ShardPlan): Access {
  const roundsByChance = optimizers.some(({ rounding }) => rounding !== undefined);
  return dtype === "float32" || roundsByChance ? "change" : "overwrite";
}
