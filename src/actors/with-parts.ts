import type { PartCollection, PartCollector } from "./state/saving/index.ts";

/** A save by its generation of the ranks and its step, and how many parts it has. */
export interface CollectedSave {
  readonly generation: number;
  readonly step: number;
  readonly numParts: number;
}

/** Makes a save of its parts. The same step may be saved once more, also after a failure, once all parts have come. */
export async function withParts<T>(
  parts: PartCollector,
  { generation, step, numParts }: CollectedSave,
  work: (collection: PartCollection) => Promise<T>,
): Promise<T> {
  using collection = parts.of(generation, step);
  const done = work(collection);
  done
    // The parts of a failed save that are still on their way are dropped: no other save gets them.
    .catch(() => collection.until(() => collection.numParts >= numParts))
    .finally(() => parts.close(collection))
    .catch(() => {});
  return await done;
}
