import { sendSeconds } from "../cost/cluster.ts";
import type { Operation, Part } from "./rank-program.ts";
import { gatheredBlock, type SimulatedShards } from "./simulated-shards.ts";
import type { SimulatedRank, SimulatedWorld, StepTimes } from "./simulated-world.ts";

type Compute = Extract<Operation, { kind: "compute" }>;
type Transfer = Extract<Operation, { kind: "send" | "receive" }>;

/** The ranks of a simulation: each runs its program in order, computing or waiting, like a blocking thread. */
export class SimulatedRanks {
  readonly #world: SimulatedWorld;
  readonly #shards: SimulatedShards;
  /** Ranks that have reached the block that their tensor-parallel group computes next, by the group's first rank. */
  readonly #neighbours = new Map<number, number>();

  constructor(world: SimulatedWorld, shards: SimulatedShards) {
    this.#world = world;
    this.#shards = shards;
  }

  /** Runs a rank until it computes or waits. */
  advance(rank: SimulatedRank): void {
    rank.waitsFor = undefined;
    for (;;) {
      const operations = rank.plan.program[rank.step];
      if (operations === undefined) return;
      const operation = operations[rank.next];
      if (operation === undefined) {
        this.#endStep(rank);
      } else if (this.#perform(rank, operation)) {
        rank.next += 1;
      } else {
        return;
      }
    }
  }

  /** Gathered blocks do not count for the next step. */
  #endStep(rank: SimulatedRank): void {
    for (const { index } of rank.plan.share.layouts) rank.inbox.forget(gatheredBlock(index));
    rank.step += 1;
    rank.next = 0;
    rank.stepBeganS.push(this.#world.time.nowS);
  }

  /** Runs an operation. @returns whether it is done at once; else the rank goes on later, at that operation or after it */
  #perform(rank: SimulatedRank, operation: Operation): boolean {
    const { order } = this.#world;
    switch (operation.kind) {
      case "gather":
        this.#shards.gather(rank, operation.block);
        return true;
      case "await":
        return this.#isHere(rank, gatheredBlock(operation.block), "exposedS");
      case "release":
        order.released(rank.rank, operation.block);
        rank.inbox.forget(gatheredBlock(operation.block));
        return true;
      case "compute":
        this.#compute(rank, operation);
        return false;
      case "reduce":
        this.#shards.reduce(rank, operation.block);
        return true;
      case "send":
        this.#send(rank, operation);
        return true;
      case "receive":
        return this.#receive(rank, operation);
      default:
        return operation satisfies never;
    }
  }

  /** Computes a block together with the tensor-parallel neighbours: begins when all have reached it. */
  #compute(rank: SimulatedRank, operation: Compute): void {
    const { tpGroup } = rank;
    const { time, order } = this.#world;
    order.computes(rank.rank, rank.step, operation.block);
    rank.waitsFor = "its tensor-parallel neighbours";
    rank.waitsSinceS = time.nowS;
    const group = tpGroup[0]?.rank ?? rank.rank;
    const numHere = (this.#neighbours.get(group) ?? 0) + 1;
    this.#neighbours.set(group, numHere % tpGroup.length);
    if (numHere < tpGroup.length) return;
    const { computeS, tpS } = this.#price(rank, operation);
    const beginS = time.nowS;
    const endS = beginS + computeS + tpS;
    for (const member of tpGroup) {
      const times = member.times[member.step] as StepTimes;
      times.computeS += computeS;
      times.tensorParallelS += beginS - member.waitsSinceS + tpS;
      member.waitsFor = undefined;
      this.#world.note(member, () => {
        const name = `${operation.pass} ${operation.block}`;
        return { lane: "compute", name, step: member.step, beginS, endS };
      });
    }
    time.at(endS, () => {
      for (const member of tpGroup) {
        if (operation.pass === "backward") order.contributed(member.rank, operation.block);
        member.next += 1;
        this.advance(member);
      }
    });
  }

  /** Prices a computation. An embedding takes no time; a group is as slow as its slowest rank. */
  #price(rank: SimulatedRank, { pass, part, block }: Compute): { computeS: number; tpS: number } {
    const { straggler } = this.#world.options;
    const cost = rank.plan.costs.blocks[block];
    if (cost === undefined || (part satisfies Part) === "embedding") return { computeS: 0, tpS: 0 };
    const isSlow = rank.tpGroup.some((member) => member.rank === straggler?.rank);
    const wholeS = pass === "forward" ? cost.forwardS : cost.backwardS;
    const tpS = pass === "forward" ? cost.forwardTpS : cost.backwardTpS;
    return { computeS: (wholeS - tpS) * (isSlow ? (straggler?.factor ?? 1) : 1), tpS };
  }

  #send(rank: SimulatedRank, { peer, what }: Transfer): void {
    const { mesh, order, ranks, time } = this.#world;
    const to = ranks[mesh.rankAt({ ...mesh.placeOf(rank.rank), pp: peer })] as SimulatedRank;
    order.sent(to.rank, what);
    const seconds = sendSeconds(this.#world.link([rank, to]), rank.plan.costs.boundaryBytes);
    time.at(time.nowS + seconds, () => to.inbox.come(what));
  }

  #receive(rank: SimulatedRank, { what }: Transfer): boolean {
    if (!this.#isHere(rank, what, "bubbleS")) return false;
    rank.inbox.forget(what);
    this.#world.order.received(rank.rank, what);
    return true;
  }

  /** Returns whether data has arrived. If not, the rank is advanced when it does, and its idle time is recorded. */
  #isHere(rank: SimulatedRank, what: string, account: "exposedS" | "bubbleS"): boolean {
    const { time } = this.#world;
    if (rank.inbox.has(what)) return true;
    const sinceS = time.nowS;
    rank.waitsFor = what;
    rank.inbox.once(what, () => {
      (rank.times[rank.step] as StepTimes)[account] += time.nowS - sinceS;
      this.advance(rank);
    });
    return false;
  }
}
