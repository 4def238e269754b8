import type { OptimizerSpec } from "../../../compute/optim/index.ts";
import { type BlockPlan, Mesh, pagedBlocks } from "../../../compute/parallel/index.ts";
import type { RankPlan, ShardPlan } from "../../protocols/index.ts";

/**
 * @param rank - of the world
 * @param reader - of the parameters
 * @param blocks - of the rank's part of the model
 * @returns the plan of the rank's shard
 */
export function planShard(
  plan: RankPlan,
  rank: number,
  reader: string,
  blocks: BlockPlan,
  optimizers: readonly OptimizerSpec[],
): ShardPlan {
  const { groups, execution, precision, training, anomalies, telemetry, initial, generation } = plan;
  const rounding = precision.rounding === "stochastic" ? { seed: training.seed } : undefined;
  const { optimizer, parameters } = plan.offload;
  const mesh = new Mesh(plan.layout.mesh);
  const modelParallel = mesh.groupOf("mp", rank);
  const together = [...new Set([...modelParallel, ...mesh.groupOf("ep", rank)])];
  return {
    layouts: blocks.layouts,
    optimizers: optimizers.map((spec) => ({ ...spec, rounding })),
    peers: { groups, replicas: mesh.groupOf("dp", rank), modelParallel, together },
    execution,
    precision,
    training,
    numMicroBatches: training.accumulation * mesh.shape.dp,
    anomalies,
    offload: {
      optimizer,
      parameters: parameters && {
        ...parameters,
        blocks: pagedBlocks(blocks),
        windowBytes: execution.prefetchBytes,
      },
    },
    telemetry,
    initial,
    generation,
    reader,
  };
}
