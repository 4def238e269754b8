import { type Tensor, tensor } from "../../tensor/index.ts";
import { Embedding } from "../layers/embedding.ts";
import { type Initializer, normal } from "../module/initializer.ts";

/** How distances are dealt to buckets. */
export interface RelativeBuckets {
  readonly numBuckets: number;
  /** From this distance on all share the last bucket. */
  readonly maxDistance: number;
  /** Whether keys behind the query have buckets of their own, half of all; else they share that of distance 0. */
  readonly bothWays: boolean;
}

/**
 * T5's bias on attention scores: a learned number for each head and bucket of distances between key and query, for
 * `attention`'s `bias`. Near distances have buckets of their own, far ones share them in logarithmic steps. weight
 * [buckets, H].
 * @see Raffel et al. 2020 §2.1, https://arxiv.org/abs/1910.10683
 */
export class RelativePositionBias extends Embedding {
  readonly buckets: RelativeBuckets;

  constructor(numHeads: number, buckets: RelativeBuckets, init: Initializer = normal(0, 1)) {
    super(buckets.numBuckets, numHeads, init);
    this.buckets = buckets;
  }

  /**
   * @param first - position of the first query; keys are counted from 0
   * @returns [1, H, T, S] for T queries and S keys; H is read off the weight
   */
  between(numQueries: number, numKeys: number, first = 0): Tensor {
    const distances = Array.from({ length: numQueries + numKeys - 1 }, (_, place) =>
      relativeBucket(place - numQueries + 1 - first, this.buckets),
    );
    const rows = tensor(distances, { dtype: "int64" }).unfold(0, numKeys, 1).flip([0]); // [T, S], by s − t
    return this.forward(rows).permute([2, 0, 1]).unsqueeze(0);
  }
}

/**
 * The bucket of a distance, rounded to float32 at each step as transformers has it: where a distance lies on the edge of a
 * bucket the last bit decides.
 * @param distance - position of the key less that of the query
 */
export function relativeBucket(
  distance: number,
  { numBuckets, maxDistance, bothWays }: RelativeBuckets,
): number {
  const count = bothWays ? Math.floor(numBuckets / 2) : numBuckets;
  const first = bothWays && distance > 0 ? count : 0;
  const far = bothWays ? Math.abs(distance) : Math.max(0, -distance);
  const numExact = Math.floor(count / 2);
  if (far < numExact) return first + far;
  const logarithm = Math.fround(Math.log(Math.fround(far / numExact)));
  const share = Math.fround(logarithm / Math.fround(Math.log(maxDistance / numExact)));
  const bucket = numExact + Math.trunc(Math.fround(share * (count - numExact)));
  return first + Math.min(bucket, count - 1);
}
