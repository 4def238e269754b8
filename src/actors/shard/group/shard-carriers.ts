import {
  type Carrier,
  type GroupPlace,
  type GroupPlan,
  nearCarrier,
  needsRendezvous,
  openCarrier,
} from "../../../compute/collectives/index.ts";

/** Ranks of the world, in order. */
type Ranks = readonly number[];

/**
 * Carries tensors among the members of each group of shards. A group opens connections of its own only if its members exchange
 * bytes, share no memory, and are not all members of another connected group, whose connections they use.
 */
export class ShardCarriers implements Disposable {
  readonly #plan: GroupPlan;
  readonly #near: Carrier;
  readonly #joined: { readonly ranks: ReadonlySet<number>; readonly carrier: Carrier }[] = [];

  /** Joins the groups, in which any two shards list those that they share in one order; blocks until all members have. */
  constructor(plan: GroupPlan, place: Omit<GroupPlace, "group" | "ranks">, groups: readonly Ranks[]) {
    this.#plan = plan;
    this.#near = nearCarrier(plan, place);
    for (const ranks of connectedGroups(plan, groups)) {
      const carrier = openCarrier(plan, { ...place, group: "shards", ranks });
      this.#joined.push({ ranks: new Set(ranks), carrier });
    }
  }

  /** @returns the carrier of tensors among these ranks of the world; all members of a group get that of the same group */
  among(ranks: Ranks): Carrier {
    if (!needsRendezvous(this.#plan, ranks)) return this.#near;
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

/** @returns the groups of `groupsOfShard` that need connections of their own: each once, without parts of others */
export function connectedGroups(plan: GroupPlan, groups: readonly Ranks[]): readonly Ranks[] {
  const all = [...new Map(groups.map((ranks) => [ranks.join(" "), ranks])).values()];
  const isPart = (ranks: Ranks) =>
    all.some((other) => other.length > ranks.length && ranks.every((rank) => other.includes(rank)));
  return all.filter((ranks) => needsRendezvous(plan, ranks) && !isPart(ranks));
}
