import { randperm } from "./numpy/random-state.ts";

/** Options for the samples of one replica. */
export interface ReplicaBatches {
  readonly numSamples: number;
  /** Samples consumed before by all replicas. */
  readonly consumed: number;
  readonly microBatch: number;
  readonly replica: number;
  readonly numReplicas: number;
}

/** Consecutive samples, a micro-batch for each replica; an incomplete last batch is dropped. */
export function* singleBatches(options: ReplicaBatches): Generator<number[]> {
  const { numSamples, consumed, microBatch, replica, numReplicas } = options;
  const together = microBatch * numReplicas;
  for (let begin = consumed; begin + together <= numSamples; begin += together) {
    const first = begin + replica * microBatch;
    yield Array.from({ length: microBatch }, (_, i) => first + i);
  }
}

/**
 * Yields the rest of one epoch in torch's random order. The next epoch begins once all complete batches are consumed.
 * @param options.sharded - whether each replica shuffles a part of its own; then the order depends on the number of
 * replicas
 */
export function* cyclicBatches(options: ReplicaBatches & { readonly sharded: boolean }): Generator<number[]> {
  const { numSamples, consumed, microBatch, replica, numReplicas, sharded } = options;
  const together = microBatch * numReplicas;
  const active = numSamples - (numSamples % together);
  const epoch = Math.floor(consumed / active);
  const position = consumed % active;
  const indices = sharded ? shardedOrder() : strided();
  for (let begin = 0; begin + microBatch <= indices.length; begin += microBatch)
    yield indices.slice(begin, begin + microBatch);

  function shardedOrder(): number[] {
    const bucket = Math.floor(numSamples / together) * microBatch;
    const order = randperm(bucket, epoch).subarray(Math.floor(position / numReplicas));
    return Array.from(order, (index) => replica * bucket + index);
  }

  function strided(): number[] {
    const full = Math.floor(numSamples / microBatch) * microBatch;
    const order = randperm(full, epoch).subarray(position);
    return Array.from(order).filter((_, i) => i % numReplicas === replica);
  }
}
