import { memory, type TagUse } from "../tensor/index.ts";

/** What one rank holds, its shard and its offload actor with it. Plain data. */
export interface HeldMemory {
  readonly rank: number;
  /**
   * By kind: "parameters", "master", "optimizer", "gradients", "activations", "snapshot", "staging", "offload", and
   * "working" for what a shard needs for a moment. Whole parameters that several ranks of a process read are the first
   * one's.
   */
  readonly byKind: Readonly<Record<string, TagUse>>;
}

/**
 * @param run - its name in the process, where another may be under way
 * @returns whom a rank's threads charge their memory to
 */
export function ownerOf(run: string, rank: number): string {
  return `${run} rank-${rank}`;
}

/** @returns what a rank of this process holds now */
export function heldBy(run: string, rank: number): HeldMemory {
  return { rank, byKind: memory().byOwner[ownerOf(run, rank)] ?? {} };
}
