import type { AskKind, In, Kind, Out } from "../../../runtime/index.ts";
import type { HostNode, RankGroup, RankProtocol, ShardProtocol } from "../../protocols/index.ts";
import { sendDown } from "./answer-relay.ts";
import { hostTree } from "./host-tree.ts";

/** Who is spoken to. */
interface Members {
  readonly ranks: RankProtocol;
  readonly shards: ShardProtocol;
}

/** What one member alone is told beside, by its rank of the world. */
type Own<Message> = readonly Partial<Message>[] | undefined;

/**
 * How the conductor speaks to all ranks of a group, or to all their shards: to each straight where they live on one host, along a tree of
 * hosts where they live on several. It speaks to them in no other way, so they hear it in the order in which it was said.
 */
export class Broadcast {
  readonly #group: RankGroup;
  /** The conductor's own place: above the hosts, or above all ranks of the only one. */
  readonly #root: HostNode;
  readonly #deadlineMs: number;

  /**
   * @param hosts - by rank of the world, where it lives
   * @param deadlineMs - how long each may take to answer
   */
  constructor(group: RankGroup, hosts: readonly number[], deadlineMs: number) {
    const below = hostTree(hosts);
    this.#group = group;
    this.#root = { ranks: below.length === 0 ? [...group.ranks.keys()] : [], below };
    this.#deadlineMs = deadlineMs;
  }

  /**
   * @param own - by rank of the world
   * @returns their answers, in rank order
   * @throws what the first of them throws; `ACTOR_DOWN` where one is gone, or who passes it on
   */
  async ask<T extends keyof Members, K extends AskKind<Members[T]>>(
    to: T,
    kind: K,
    message: In<Members[T], K> & object,
    own?: Own<In<Members[T], K>>,
  ): Promise<Out<Members[T], K>[]> {
    const order = { host: this.#root, to, kind, message, own, deadlineMs: this.#deadlineMs };
    const answers: Out<Members[T], K>[] = [];
    for (const [rank, answer] of await sendDown(order, this.#group))
      answers[rank] = answer as Out<Members[T], K>;
    return answers;
  }

  /** Says something to which nobody answers; it is sent when this returns. */
  async tell<T extends keyof Members, K extends Kind<Members[T]>>(
    to: T,
    kind: K,
    message: In<Members[T], K> & object,
    own?: Own<In<Members[T], K>>,
  ): Promise<void> {
    await sendDown({ host: this.#root, to, kind, message, own }, this.#group);
  }
}
