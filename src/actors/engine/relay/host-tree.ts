import type { HostNode } from "../../protocols/index.ts";

/** How many each tells at most: with 8 ranks a host, the last of 1,024 ranks hears by the second host that passes it on. */
const FAN_OUT = 16;

/**
 * The hosts of a run as a tree, each told by one other: what all ranks are told then costs the head as many messages as it has hosts
 * below it, whatever there is of ranks.
 * @param hosts - by rank of the world, where it lives
 * @returns those that the head tells itself; none where all ranks live on one host, which it tells one by one
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
