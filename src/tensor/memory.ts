import { native } from "./native.ts";

/** What the allocator's ledger says, in bytes that tensors asked for, over all threads of the process. */
export interface MemoryUse {
  /** Held by tensors now. */
  readonly totalBytes: number;
  /** The most that was held at once since the start or the last {@link resetPeakMemory}. */
  readonly peakBytes: number;
  /** Held from the system, in use or cached. */
  readonly residentBytes: number;
  /** Held now, by the tag under which it was allocated; "" is untagged. */
  readonly byTag: Readonly<Record<string, number>>;
  /** The most that was held at once under each tag, since the start or the last {@link resetPeakMemory}. */
  readonly peakByTag: Readonly<Record<string, number>>;
}

/** The ledger of CPU memory now. */
export function memory(): MemoryUse {
  const { liveBytes, peakBytes, residentBytes, tags } = native().memory();
  const byTag = Object.fromEntries(Object.entries(tags).map(([tag, use]) => [tag, use.liveBytes]));
  const peakByTag = Object.fromEntries(Object.entries(tags).map(([tag, use]) => [tag, use.peakBytes]));
  return { totalBytes: liveBytes, peakBytes, residentBytes, byTag, peakByTag };
}

/** Charges what `body` allocates in this thread to a tag such as "rank-0/activations"; inner tags win over outer ones. */
export function tagMemory<T>(tag: string, body: () => T): T {
  const before = native().setAllocationTag(native().allocationTag(tag));
  try {
    return body();
  } finally {
    native().setAllocationTag(before);
  }
}

/** Starts the peak again at what is held now. */
export function resetPeakMemory(): void {
  native().resetPeakMemory();
}

/** Gives cached memory that no tensor uses back to the system. */
export function releaseCachedMemory(): void {
  native().releaseCachedMemory();
}
