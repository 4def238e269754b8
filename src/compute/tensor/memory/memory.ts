import { loadedNative, native } from "../native.ts";

/** Bytes under one tag. */
export interface TagUse {
  /** Held by tensors now. */
  readonly liveBytes: number;
  /** The most that was held at once since the start or the last {@link resetPeakMemory}. */
  readonly peakBytes: number;
}

/** What the allocator's ledger says, in bytes that tensors asked for, over all threads of the process. */
export interface MemoryUse {
  /** Held by tensors now. */
  readonly totalBytes: number;
  /** The most that was held at once since the start or the last {@link resetPeakMemory}. */
  readonly peakBytes: number;
  /** Held from the system, in use or cached. */
  readonly residentBytes: number;
  /** Held now, by the tag under which it was allocated, of all owners together; "" is untagged. */
  readonly byTag: Readonly<Record<string, number>>;
  /** By owner, such as a rank, and tag. */
  readonly byOwner: Readonly<Record<string, Readonly<Record<string, TagUse>>>>;
  /** The most that was held at once under each tag, of several owners the sum of each one's most, since the start or the last {@link resetPeakMemory}. */
  readonly peakByTag: Readonly<Record<string, number>>;
}

/** Between an owner and a tag. */
const OWNED_BY = ":";

/** The ledger now, of the host and of its devices together. */
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
 * Charges all that this thread allocates from now on to an owner, such as `rank-0`; several threads may have one owner.
 * @param untagged - the tag of what no {@link tagMemory} tags
 */
export function chargeThreadTo(name: string, untagged: string): void {
  owner = name + OWNED_BY;
  tagIds.clear();
  native().setAllocationTag(tagId(untagged));
}

/** Charges what `body` allocates in this thread to a tag such as "gradients"; inner tags win over outer ones. */
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

/** Starts the peak again at what is held now. */
export function resetPeakMemory(): void {
  native().resetPeakMemory();
}

/** A GPU's memory, in bytes. */
export interface GpuMemory {
  /** Free on the whole GPU, as CUDA tells: what other processes hold is not. */
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Held by this process's caching allocator, in use or cached. */
  readonly heldBytes: number;
  /** Of these in use, in blocks of 512 bytes; the ledger of {@link memory} has what tensors asked for, by tag. */
  readonly liveBytes: number;
}

/**
 * The memory of GPU `index` of this process.
 * @throws {TroupeError} `DEVICE_UNAVAILABLE` where the addon has no CUDA
 */
export function gpuMemory(index: number): GpuMemory {
  return native().cudaMemory(index);
}

/**
 * Gives memory that nothing uses back to the system, and to the GPUs: what is cached for tensors, and what threads that have
 * ended had freed. Does nothing in a thread that has not loaded the addon.
 */
export function releaseCachedMemory(): void {
  loadedNative()?.releaseCachedMemory();
}
