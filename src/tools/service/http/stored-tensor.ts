import { numelOf } from "../../../compute/tensor/index.ts";
import type { Box, Checkpoint, CheckpointFacts } from "../../../library/checkpoint/index.ts";

/** A checkpoint's contents, for an answer. */
export function summaryOf(checkpoint: Checkpoint): object {
  const { names, config, path, state } = checkpoint;
  const weights = new Set(checkpoint.weights);
  const tensors = names.map((name) => {
    const { dtype, shape } = checkpoint.entry(name);
    return { name, group: weights.has(name) ? "weights" : "optimizer", dtype, shape };
  });
  return { step: state.step, path, tensors, metadata: state.metadata ?? {}, config };
}

/** A checkpoint in a list, for an answer. */
export function plainFacts({ name, step, sizeBytes, latest, damage }: CheckpointFacts): object {
  return { name, step, sizeBytes, latest, ...(damage === undefined ? {} : { damage: damage.message }) };
}

/** Yields a box of a tensor, row-major, in parts of `maxElements`; a part's memory may be reused at the next. */
export async function* partsOf(
  checkpoint: Checkpoint,
  name: string,
  box: Box,
  itemBytes: number,
  maxElements: number,
): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(Math.min(maxElements, numelOf(box.shape)) * itemBytes);
  for (const part of pieces(box, maxElements, 0))
    yield await checkpoint.read(name, buffer.subarray(0, numelOf(part.shape) * itemBytes), part);
}

/** Cuts a box into smaller ones, in row-major order. */
function* pieces(box: Box, maxElements: number, dim: number): Generator<Box> {
  const size = box.shape[dim];
  if (size === undefined || numelOf(box.shape) <= maxElements) {
    if (numelOf(box.shape) > 0) yield box;
    return;
  }
  const rowElements = numelOf(box.shape.slice(dim + 1));
  const rows = Math.max(1, Math.floor(maxElements / rowElements));
  for (let begin = 0; begin < size; begin += rows) {
    const offset = box.offset.with(dim, (box.offset[dim] as number) + begin);
    const shape = box.shape.with(dim, Math.min(rows, size - begin));
    yield* pieces({ offset, shape }, maxElements, dim + 1);
  }
}
