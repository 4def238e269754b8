import type { MeshAxis } from "../../compute/parallel/index.ts";
import { type DType, Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { TensorBatch } from "../../library/data/index.ts";
import { currentRank } from "./current-rank.ts";

const placeAlong = (axis: MeshAxis) => () => currentRank().axes[axis].index;
const sizeOf = (axis: MeshAxis) => () => currentRank().axes[axis].size;

/**
 * Megatron's `mpu`, as far as scripts use it: the rank's position in the mesh, as in `rank.axes`. For loops and hooks.
 * @throws {TroupeError} `LOOP_ORDER` outside a rank
 */
export const mpu = {
  getDataParallelRank: placeAlong("dp"),
  getDataParallelWorldSize: sizeOf("dp"),
  getTensorModelParallelRank: placeAlong("tp"),
  getTensorModelParallelWorldSize: sizeOf("tp"),
  getPipelineModelParallelRank: placeAlong("pp"),
  getPipelineModelParallelWorldSize: sizeOf("pp"),
  isPipelineFirstStage: () => currentRank().axes.pp.index === 0,
  isPipelineLastStage: () => currentRank().axes.pp.index === currentRank().axes.pp.size - 1,
  /**
   * Returns named tensors of a batch in one dtype. Tensor-parallel ranks have the same batch already, so nothing is sent.
   * @throws {TroupeError} `DATA_BATCH` if the batch lacks one
   */
  broadcastData<K extends string>(keys: readonly K[], data: TensorBatch, dtype: DType): Record<K, Tensor> {
    const named = keys.map((key) => {
      const tensor = data[key];
      if (tensor instanceof Tensor) return [key, tensor.to(dtype)] as const;
      const got = Object.keys(data).join(", ");
      throw new TroupeError("DATA_BATCH", {
        where: "mpu.broadcastData",
        expected: `a batch with ${key}`,
        got,
      });
    });
    return Object.fromEntries(named) as Record<K, Tensor>;
  },
} as const;
