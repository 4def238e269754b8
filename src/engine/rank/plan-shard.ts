import type { OptimizerSpec } from "../../optim/index.ts";
import { type BlockPlan, Mesh, pagedBlocks } from "../../parallel/index.ts";
import type { RankPlan, ShardPlan } from "../../protocols/index.ts";

/**
 * @param rank - of the world
 * @param reader - who reads the parameters
 * @param blocks - of the rank's part of the model
 * @returns what the rank's shard is to hold, and how it is to update it
 */
export function planShard(
  plan: RankPlan,
  rank: number,
  reader: string,
  blocks: BlockPlan,
  optimizers: readonly OptimizerSpec[],
): ShardPlan {
  const { clip, lossScale, anomalies, recentLosses, initial, life, numThreads, slowdown, trace } = plan;
  const { optimizer, parameters } = plan.offload;
  const mesh = new Mesh(plan.mesh);
  return {
    layouts: blocks.layouts,
    replicas: mesh.groupOf("dp", rank),
    modelParallel: mesh.groupOf("mp", rank),
    dtype: plan.dtype,
    optimizers: optimizers.map((spec) => ({ ...spec, rounding: plan.rounding })),
    clip,
    lossScale,
    anomalies,
    recentLosses,
    numMicroBatches: plan.accumulation * mesh.shape.dp,
    initial,
    run: plan.groups.run,
    life,
    numThreads,
    reader,
    offload: optimizer,
    parametersAway: parameters && {
      ...parameters,
      blocks: pagedBlocks(blocks),
      windowBytes: plan.prefetchBytes,
    },
    slowdown,
    trace,
    deadlineMs: plan.deadlineMs,
  };
}
