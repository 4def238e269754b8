import { updateRuleOf } from "../../../compute/optim/index.ts";
import { holdersOf } from "../../../compute/parallel/index.ts";
import type { ShardPlan } from "../../protocols/index.ts";
import { rowAndColumn } from "./gather-by-rows.ts";

/** Ranks of the world, in order. */
type Ranks = readonly number[];

/**
 * @returns the groups in which a shard exchanges tensors, in an order in which all shards can join theirs one after the other:
 * by purpose, then by size and ranks. Statistics go by rows and columns, blocks to their holders, and optimizer exchanges to
 * the ranks that together hold the complete block.
 */
export function groupsOfShard(
  { peers, layouts, optimizers }: Pick<ShardPlan, "peers" | "layouts" | "optimizers">,
  rank: number,
): readonly Ranks[] {
  const statistics = [peers.modelParallel, peers.replicas].flatMap((ranks) => {
    const { row, column } = rowAndColumn(ranks, rank);
    return [row, column];
  });
  const doExchange = optimizers.some((spec) => updateRuleOf(spec).exchanges);
  const holders = doExchange ? layouts.map((layout) => holdersOf(layout, rank)) : [];
  return [...statistics, ...inOrder(layouts.map(({ group }) => group)), ...inOrder(holders)];
}

function inOrder(groups: readonly Ranks[]): readonly Ranks[] {
  return groups.toSorted((a, b) => a.length - b.length || firstDifference(a, b));
}

function firstDifference(a: Ranks, b: Ranks): number {
  return a.map((rank, place) => rank - (b[place] as number)).find((difference) => difference !== 0) ?? 0;
}
