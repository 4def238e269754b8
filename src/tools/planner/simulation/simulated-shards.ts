import { numelOf } from "../../../compute/tensor/index.ts";
import { byteScheme } from "../cost/byte-scheme.ts";
import { allReduceSeconds, ringSeconds } from "../cost/cluster.ts";
import { ROOT_BLOCK } from "../cost/rank-share.ts";
import type { SimulatedRank, SimulatedWorld } from "./simulated-world.ts";

/** The event of a block's parameters being gathered on a rank. */
export function gatheredBlock(block: number): string {
  return `gathered block ${block}`;
}

/**
 * The shards of a simulation: gather, reduce, agree on the norm, and update next to the computation. Each shard has one
 * lane for collectives and one for updates; as in the product, a collective begins when all of its ranks have reached
 * it, in whatever order.
 */
export class SimulatedShards {
  readonly #world: SimulatedWorld;

  constructor(world: SimulatedWorld) {
    this.#world = world;
  }

  /** Gathers a block's parameters of the step, once every rank of the group has asked and has updated its share. */
  gather(rank: SimulatedRank, block: number): void {
    const { occurrences } = this.#world;
    const { dpGroup, step } = rank;
    if (!occurrences.arrive(`gather/${dpGroup[0]?.rank}/${step}/${rank.next}`, dpGroup.length)) return;
    const late = dpGroup.filter(({ updates }) => (updates[block] ?? 0) < step);
    let numLate = late.length;
    if (numLate === 0) this.#transfer(dpGroup, block, step);
    for (const { rank: peer } of late)
      occurrences.once(updatedKey(peer, step, block), () => {
        numLate -= 1;
        if (numLate === 0) this.#transfer(dpGroup, block, step);
      });
  }

  /** Reduces a block once all ranks of the group have its complete gradient, and then updates it. */
  reduce(rank: SimulatedRank, block: number): void {
    const { occurrences, order } = this.#world;
    const { dpGroup, step, plan } = rank;
    order.reduces(rank.rank, step, block);
    if (!occurrences.arrive(`reduce/${dpGroup[0]?.rank}/${step}/${block}`, dpGroup.length)) return;
    const split = (plan.share.layouts[block]?.zero ?? 0) >= 2;
    const sizeBytes = plan.costs.blocks[block]?.gradientBytes ?? 0;
    const collective = split ? ringSeconds : allReduceSeconds;
    const seconds = collective(this.#world.link(dpGroup), dpGroup.length, sizeBytes);
    this.#communicate(dpGroup, `reduce ${block}`, step, seconds + this.#tiedSeconds(rank, block), () => {
      for (const member of dpGroup) this.#reduced(member, step, block);
    });
  }

  #transfer(group: readonly SimulatedRank[], block: number, step: number): void {
    const { plan } = group[0] as SimulatedRank;
    const sizeBytes = plan.costs.blocks[block]?.gatheredBytes ?? 0;
    const isOwn = plan.share.layouts[block]?.zero === 0;
    const seconds = isOwn ? 0 : ringSeconds(this.#world.link(group), group.length, sizeBytes);
    const then = () => {
      const ranks = group.map(({ rank }) => rank);
      this.#world.order.gathered(ranks, step, block);
      for (const { inbox } of group) inbox.come(gatheredBlock(block));
    };
    if (isOwn) then();
    else this.#communicate(group, `gather ${block}`, step, seconds, then);
  }

  #reduced(rank: SimulatedRank, step: number, block: number): void {
    const { occurrences, options, ranks, time } = this.#world;
    if (options.clip === false) {
      this.#update(rank, step, block);
      return;
    }
    rank.numReduced += 1;
    if (rank.numReduced < this.#world.trainedBlocks(rank).length) return;
    rank.numReduced = 0;
    if (!occurrences.arrive(`norm/${step}`, ranks.length)) return;
    const seconds = allReduceSeconds(this.#world.link(ranks), ranks.length, Float64Array.BYTES_PER_ELEMENT);
    time.at(time.nowS + seconds, () => {
      for (const member of ranks) {
        for (const trained of this.#world.trainedBlocks(member)) this.#update(member, step, trained);
      }
    });
  }

  #update(rank: SimulatedRank, step: number, block: number): void {
    const { occurrences, options, order, time } = this.#world;
    const seconds = (rank.plan.costs.blocks[block]?.updateS ?? 0) + (options.delayPerUpdateS ?? 0);
    const beginS = Math.max(time.nowS, rank.updateFreeS);
    const endS = beginS + seconds;
    rank.updateFreeS = endS;
    timesOf(rank, step).updateS += seconds;
    this.#world.note(rank, () => ({ lane: "update", name: `update ${block}`, step, beginS, endS }));
    time.at(endS, () => {
      order.updated(rank.rank, step, block);
      rank.updates[block] = step + 1;
      occurrences.come(updatedKey(rank.rank, step + 1, block));
    });
  }

  /** Occupies the lanes of all ranks of a collective at once. */
  #communicate(
    group: readonly SimulatedRank[],
    name: string,
    step: number,
    seconds: number,
    then: () => void,
  ): void {
    const { options, time } = this.#world;
    const wholeS = group.length === 1 ? seconds : seconds + (options.delayPerCollectiveS ?? 0);
    const beginS = Math.max(time.nowS, ...group.map(({ communicationFreeS }) => communicationFreeS));
    const endS = beginS + wholeS;
    for (const member of group) {
      member.communicationFreeS = endS;
      timesOf(member, step).communicationS += wholeS;
      this.#world.note(member, () => ({ lane: "communication", name, step, beginS, endS }));
    }
    time.at(endS, then);
  }

  /** A tied embedding's gradient is also summed over the first and the last stage. */
  #tiedSeconds(rank: SimulatedRank, block: number): number {
    const { facts, layout, options, ranks } = this.#world;
    const last = facts.calls.length;
    const tied = facts.root.filter(({ uses }) => uses.includes(0) && uses.includes(last));
    if (block !== ROOT_BLOCK || layout.pp === 1 || tied.length === 0 || rank.plan.share.ends.length === 0)
      return 0;
    const numel = tied.reduce((sum, { parameter }) => sum + numelOf(parameter.shape), 0);
    const sizeBytes = (numel * byteScheme(options.precision).gradient) / layout.tp;
    const ends = [ranks[0] as SimulatedRank, ranks.at(-1) as SimulatedRank];
    return allReduceSeconds(this.#world.link(ends), ends.length, sizeBytes);
  }
}

function updatedKey(rank: number, numUpdates: number, block: number): string {
  return `update ${numUpdates} of block ${block} on rank ${rank}`;
}

function timesOf(rank: SimulatedRank, step: number): SimulatedRank["times"][number] {
  return rank.times[step] as SimulatedRank["times"][number];
}
