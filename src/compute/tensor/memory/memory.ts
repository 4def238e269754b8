import { loadedNative, native } from "../native.ts";

/** Memory under one tag, in bytes. */
export interface TagUse {
  /** Held by tensors now. */
  readonly liveBytes: number;
  /** The most that was held at once since the start or the last {@link resetPeakMemory}. */
  readonly peakBytes: number;
}

/** The allocator's ledger, in bytes that tensors asked for, over all threads of the process. */
export interface MemoryUse {
  /** Held by tensors now. */
  readonly totalBytes: number;
  /** The most that was held at once since the start or the last {@link resetPeakMemory}. */
  readonly peakBytes: number;
  /** Taken from the system, in use or cached. */
  readonly residentBytes: number;
  /** Held now, by the tag under which it was allocated, for all owners together; "" is untagged. */
  readonly byTag: Readonly<Record<string, number>>;
  /** By owner, such as a rank, and tag. */
  readonly byOwner: Readonly<Record<string, Readonly<Record<string, TagUse>>>>;
  /**
   * The most that was held at once under each tag, since the start or the last {@link resetPeakMemory}; for several owners
   * the sum of their peaks.
   */
  readonly peakByTag: Readonly<Record<string, number>>;
}

/** Separates an owner from a tag. */
const OWNED_BY = ":";

/** Reads the ledger, for the host and its devices together. */
export function memory(): MemoryUse {
  const { liveBytes, peakBytes, residentBytes, tags } = native().memory();
  const byTag: Record<string, number> = {};
  const peakByTag: Record<string, number> = {};
  const byOwner: Record<string, Record<string, TagUse>> = {};
  for (const [name, use] of Object.entries(tags)) {
    const [first = "", second] = name.split(OWNED_BY, 2);
    const tag = second ?? first;
    byTag[tag] = (byTag[tag] ?? 0) + use.liveBytes;
    peakByTag[tag] = (peakByTag[tag] ?? 0) + use.peakBytes;
    if (second === undefined) continue;
    byOwner[first] ??= {};
    byOwner[first][tag] = use;
  }
  return { totalBytes: liveBytes, peakBytes, residentBytes, byTag, byOwner, peakByTag };
}

let owner = "";
const tagIds = new Map<string, number>();

/**
 * Charges everything that this thread allocates from now on to an owner, such as `rank-0`; several threads may have one owner.
 * @param untagged - tag of memory outside every {@link tagMemory}
 */
export function chargeThreadTo(name: string, untagged: string): void {
  owner = name + OWNED_BY;
  tagIds.clear();
  native().setAllocationTag(tagId(untagged));
}

/** Charges the memory that `body` allocates in this thread to a tag such as "gradients"; inner tags win over outer ones. */
export function tagMemory<T>(tag: string, body: () => T): T {
  const before = native().setAllocationTag(tagId(tag));
  try {
    return body();
  } finally {
    native().setAllocationTag(before);
  }
}

function tagId(tag: string): number {
  const known = tagIds.get(tag);
  if (known !== undefined) return known;
  const id = native().allocationTag(owner + tag);
  tagIds.set(tag, id);
  return id;
}

/** Resets the peaks to what is held now. */
export function resetPeakMemory(): void {
  native().resetPeakMemory();
}

/** A GPU's memory, in bytes. */
export interface GpuMemory {
  /** Free on the GPU, as CUDA reports it: memory of other processes is not free. */
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Held by this process's caching allocator, in use or cached. */
  readonly heldBytes: number;
  /** The part of it in use, in blocks of 512 bytes; the ledger of {@link memory} has the bytes that tensors asked for, by tag. */
  readonly liveBytes: number;
}

/**
 * Returns the memory of GPU `index` of this process.
 * @throws {TroupeError} `DEVICE_UNAVAILABLE` if the addon has no CUDA
 */
export function gpuMemory(index: number): GpuMemory {
  return native().cudaMemory(index);
}

/**
 * Returns unused memory to the system and the GPUs: memory cached for tensors, and memory freed by threads that have ended.
 * Does nothing in a thread that has not loaded the addon.
 */
export function releaseCachedMemory(): void {
  loadedNative()?.releaseCachedMemory();
}
