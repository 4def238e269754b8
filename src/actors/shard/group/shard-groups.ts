import { ALIAS, type Reduction } from "../../../compute/collectives/index.ts";
import type { TroupeError } from "../../../errors/index.ts";
import type { ActorRef, Down } from "../../../runtime/index.ts";
import type { ShardGroupProtocol } from "../../protocols/index.ts";
import type { ShardCarriers } from "./shard-carriers.ts";
import { groupName, ShardGroup } from "./shard-group.ts";

/**
 * All groups of one shard, each made on first use: by the shard itself, or by the message of a faster peer. Messages that come
 * before the carriers are known wait: a group needs its carrier.
 */
export class ShardGroups implements Disposable {
  readonly #rank: number;
  readonly #groups = new Map<string, ShardGroup>();
  #peers: readonly ActorRef<ShardGroupProtocol>[] = [];
  #carriers: ShardCarriers | undefined;
  #reduction: Reduction = "ordered";
  /** Messages that came before the carriers were known; undefined from then on. */
  #early: (() => void)[] | undefined = [];
  #ended: Down | undefined;

  /** @param rank - of the world */
  constructor(rank: number) {
    this.#rank = rank;
  }

  /** @param peers - every shard of the world, in rank order */
  join(peers: readonly ActorRef<ShardGroupProtocol>[]): void {
    this.#peers = peers;
  }

  /** Sets the ranks' carriers and the reduction, before any tensor is sent. Ownership of the carriers passes. */
  carryBy(carriers: ShardCarriers, reduction: Reduction): void {
    this.#carriers = carriers;
    this.#reduction = reduction;
    if (this.#ended !== undefined) carriers.abort(reasonOf(this.#ended));
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const take of early) take();
  }

  contributed(message: ShardGroupProtocol["contribute"]["in"]): void {
    this.#onceCarried(() => this.at(message.group).contributed(message));
  }

  owned(message: ShardGroupProtocol["own"]["in"]): void {
    this.#onceCarried(() => this.at(message.group).owned(message));
  }

  /** @returns the group of these ranks of the world, this one's among them */
  of(ranks: readonly number[]): ShardGroup {
    return this.at(groupName(ranks));
  }

  /** @param name - by `groupName` */
  at(name: string): ShardGroup {
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    const ranks = name.split(" ").map(Number);
    const peers = ranks.map((rank) => this.#peers[rank] as ActorRef<ShardGroupProtocol>);
    // Before the carriers are known a shard asks for its own group alone.
    const carrier = this.#carriers?.among(ranks) ?? ALIAS;
    const group = new ShardGroup(ranks, ranks.indexOf(this.#rank), peers, carrier, this.#reduction);
    this.#groups.set(name, group);
    if (this.#ended !== undefined) group.abort(this.#ended);
    return group;
  }

  /** A member of the world has ended, and nothing may wait for it for ever. @returns the error that every waiter gets */
  abort(down: Down): TroupeError {
    this.#ended ??= down;
    this.#carriers?.abort(reasonOf(down));
    const reasons = [...this.#groups.values()].map((group) => group.abort(down));
    return reasons[0] ?? this.of([this.#rank]).abort(down);
  }

  #onceCarried(take: () => void): void {
    if (this.#early === undefined) take();
    else this.#early.push(take);
  }

  [Symbol.dispose](): void {
    this.#carriers?.[Symbol.dispose]();
  }
}

const reasonOf = ({ actor }: Down) => `${actor} has ended`;
