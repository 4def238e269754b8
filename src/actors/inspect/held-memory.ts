import { memory } from "../../compute/tensor/index.ts";
import type { HeldMemory } from "../protocols/index.ts";

/** @param run - its name in the process, which may run others @returns the owner of a rank's memory in the ledger */
export function ownerOf(run: string, rank: number): string {
  return `${run} rank-${rank}`;
}

/** @returns the memory that a rank of this process holds now */
export function heldBy(run: string, rank: number): HeldMemory {
  return { rank, byKind: memory().byOwner[ownerOf(run, rank)] ?? {} };
}
