import { memory } from "../../compute/tensor/index.ts";
import type { HeldMemory } from "../protocols/index.ts";

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
