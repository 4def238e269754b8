import type { HostNode } from "../../protocols/index.ts";

/** Most hosts below one: with 8 ranks a host, a message reaches the last of 1,024 ranks by its second relay. */
const FAN_OUT = 16;

/**
 * The hosts of a run as a tree: a message to all costs the head as many as it has hosts below, however many ranks there are.
 * @param hosts - the host of each rank of the world
 * @returns the hosts directly below the head; empty if all ranks live on its own
 */
export function hostTree(hosts: readonly number[], fanOut = FAN_OUT): readonly HostNode[] {
  const all = [...Map.groupBy(hosts.keys(), (rank) => hosts[rank]).values()];
  if (all.length < 2) return [];
  const nodeAt = (index: number): HostNode => ({
    ranks: all[index] as number[],
    below: belowOf(index).map(nodeAt),
  });
  // As in a heap, the head before the first.
  const belowOf = (index: number) => {
    const first = (index + 1) * fanOut;
    return Array.from({ length: Math.max(0, Math.min(fanOut, all.length - first)) }, (_, n) => first + n);
  };
  return belowOf(-1).map(nodeAt);
}
