import {
  type Carrier,
  type GroupPlace,
  type GroupPlan,
  mustMeet,
  nearCarrier,
  openCarrier,
} from "../../collectives/index.ts";
import { updateRuleOf } from "../../optim/index.ts";
import { ranksOfWhole } from "../../parallel/index.ts";
import type { ShardPlan } from "../../protocols/index.ts";
import { rowAndColumn } from "./gather-by-rows.ts";

/** Ranks of the world, in order. */
type Ranks = readonly number[];

/**
 * What carries tensors among the members of each group of shards. A group meets only where its members exchange bytes, have not one
 * memory, and are not all members of another group that meets, whose connections they use.
 */
export class ShardCarriers implements Disposable {
  readonly #plan: GroupPlan;
  readonly #near: Carrier;
  readonly #joined: { readonly ranks: ReadonlySet<number>; readonly carrier: Carrier }[] = [];

  /**
   * Joins the groups; blocks until all members have.
   * @param groups - all in which this shard exchanges tensors, of those that it shares with another in the other's order too
   * @throws {TroupeError} what `openCommunicator` throws
   */
  constructor(plan: GroupPlan, place: Omit<GroupPlace, "group" | "ranks">, groups: readonly Ranks[]) {
    this.#plan = plan;
    this.#near = nearCarrier(plan, place);
    for (const ranks of meetingsOf(plan, groups)) {
      const carrier = openCarrier(plan, { ...place, group: "shards", ranks });
      this.#joined.push({ ranks: new Set(ranks), carrier });
    }
  }

  /** @returns what carries tensors among these ranks of the world; all members of a group are given that of the same one */
  among(ranks: Ranks): Carrier {
    if (!mustMeet(this.#plan, ranks)) return this.#near;
    const joined = this.#joined.find((group) => ranks.every((rank) => group.ranks.has(rank)));
    if (joined === undefined) throw new Error(`[shard] expected a group that was joined, got ranks ${ranks}`);
    return joined.carrier;
  }

  /** Whatever is under way, now or later, fails with `COLLECTIVE_ABORTED` and this reason. */
  abort(reason: string): void {
    for (const { carrier } of this.#joined) carrier.abort(reason);
  }

  [Symbol.dispose](): void {
    for (const { carrier } of this.#joined) carrier[Symbol.dispose]();
  }
}

/**
 * @returns the groups in which a shard exchanges tensors, in an order in which all shards can join theirs one after the other: by what
 *   they are for, then by size and ranks. Statistics go by rows and columns; blocks to those that hold them; and what updates exchange to
 *   those that hold the whole of a block.
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
  const wholes = doExchange ? layouts.map((layout) => ranksOfWhole(layout, rank)) : [];
  return [...statistics, ...inOrder(layouts.map(({ group }) => group)), ...inOrder(wholes)];
}

/**
 * @param groups - of one shard, as {@link groupsOfShard} has them
 * @returns those that have to meet, each once, but for those that are part of another: which all of their members are in, too
 */
export function meetingsOf(plan: GroupPlan, groups: readonly Ranks[]): readonly Ranks[] {
  const all = [...new Map(groups.map((ranks) => [ranks.join(" "), ranks])).values()];
  const isPart = (ranks: Ranks) =>
    all.some((other) => other.length > ranks.length && ranks.every((rank) => other.includes(rank)));
  return all.filter((ranks) => mustMeet(plan, ranks) && !isPart(ranks));
}

function inOrder(groups: readonly Ranks[]): readonly Ranks[] {
  return groups.toSorted((a, b) => a.length - b.length || firstDifference(a, b));
}

function firstDifference(a: Ranks, b: Ranks): number {
  return a.map((rank, place) => rank - (b[place] as number)).find((difference) => difference !== 0) ?? 0;
}
