import { arange, type Tensor, tensor } from "../../tensor/index.ts";
import { Embedding } from "../layers/embedding.ts";
import { type Initializer, normal } from "../module/initializer.ts";
import { pagedPositions } from "./pages.ts";

/** Larger distances than this, which no model has, are not all put into a table. */
const MAX_TABLE = 1 << 15;

/** The assignment of distances to buckets. */
export interface RelativeBuckets {
  readonly numBuckets: number;
  /** All distances from this one on share the last bucket. */
  readonly maxDistance: number;
  /** Whether keys after the query have buckets of their own, half of all; otherwise they share the bucket of distance 0. */
  readonly bothWays: boolean;
}

/**
 * T5's bias on attention scores: a learned number for each head and each bucket of distances between key and query, for
 * `attention`'s `bias`. Small distances have buckets of their own, large ones share them in logarithmic steps. weight
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
   * Computes the bias of T queries and S keys.
   * @param first - position of the first query; keys are counted from 0
   * @returns [1, H, T, S]; H comes from the weight
   */
  between(numQueries: number, numKeys: number, first = 0): Tensor {
    const { maxDistance } = this.buckets;
    const most = maxDistance <= MAX_TABLE ? maxDistance : numQueries + numKeys + first;
    // Looked up by tensors, so that a recorded forward holds for all lengths.
    const table = Array.from({ length: 2 * most + 1 }, (_, place) =>
      relativeBucket(place - most, this.buckets),
    );
    const distances = arange(numQueries + numKeys - 1).add(1 - numQueries - first);
    const buckets = tensor(table, { dtype: "int64" }).indexSelect(0, distances.clamp(-most, most).add(most));
    const rows = buckets.unfold(0, numKeys, 1).flip([0]); // [T, S], by s − t
    return this.forward(rows).permute([2, 0, 1]).unsqueeze(0);
  }

  /**
   * Computes the bias of the T positions from `first` on and of all before, for `selfAttention`.
   * @returns [1, H, T, first + T]; where texts are written in pages [H, L], by how far a key lies before the query, of which the
   *   last is that of all beyond
   */
  causal(numQueries: number, first: number): Tensor {
    const mostPositions = pagedPositions();
    if (mostPositions === undefined) return this.between(numQueries, first + numQueries, first);
    const numDistances = Math.min(this.buckets.maxDistance, mostPositions - 1) + 1;
    const buckets = Array.from({ length: numDistances }, (_, distance) =>
      relativeBucket(-distance, this.buckets),
    );
    const rows = this.forward(tensor(buckets, { dtype: "int64" }));
    return rows.transpose(0, 1).to("float32").contiguous();
  }
}

/**
 * Returns the bucket of a distance. Each step is rounded to float32 as in transformers, because the last bit decides for a
 * distance on the edge of a bucket.
 * @param distance - position of the key minus that of the query
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
