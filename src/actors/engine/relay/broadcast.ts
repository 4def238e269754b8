import type { AskKind, In, Kind, Out } from "../../../runtime/index.ts";
import type { HostNode, RankGroup, RankProtocol, ShardProtocol } from "../../protocols/index.ts";
import { sendDown } from "./answer-relay.ts";
import { hostTree } from "./host-tree.ts";

/** The protocols of the receivers. */
interface Members {
  readonly ranks: RankProtocol;
  readonly shards: ShardProtocol;
}

/** Further fields for single receivers, by rank of the world. */
type Own<Message> = readonly Partial<Message>[] | undefined;

/**
 * The conductor's messages to all ranks of a group, or to all their shards: direct on one host, along a tree of hosts
 * otherwise. The conductor sends nothing to them in any other way, so order is kept.
 */
export class Broadcast {
  readonly #group: RankGroup;
  /** The conductor's own place: above the hosts, or above all ranks of the only one. */
  readonly #root: HostNode;
  readonly #deadlineMs: number;

  /** @param hosts - the host of each rank of the world @param deadlineMs - the longest wait for each answer */
  constructor(group: RankGroup, hosts: readonly number[], deadlineMs: number) {
    const below = hostTree(hosts);
    this.#group = group;
    this.#root = { ranks: below.length === 0 ? [...group.ranks.keys()] : [], below };
    this.#deadlineMs = deadlineMs;
  }

  /**
   * @param own - by rank of the world
   * @param onAnswer - receives each answer as it comes, of receivers that are reached directly
   * @returns their answers, in rank order
   * @throws the first receiver's error; `ACTOR_DOWN` if a receiver or a relay is gone
   */
  async ask<T extends keyof Members, K extends AskKind<Members[T]>>(
    to: T,
    kind: K,
    message: In<Members[T], K> & object,
    own?: Own<In<Members[T], K>>,
    onAnswer: (answer: Out<Members[T], K>) => void = () => {},
  ): Promise<Out<Members[T], K>[]> {
    const order = { host: this.#root, to, kind, message, own, deadlineMs: this.#deadlineMs };
    const answers: Out<Members[T], K>[] = [];
    const hear = (answer: unknown) => onAnswer(answer as Out<Members[T], K>);
    for (const [rank, answer] of await sendDown(order, this.#group, hear))
      answers[rank] = answer as Out<Members[T], K>;
    return answers;
  }

  /** Sends a message without an answer; it is sent when this returns. */
  async tell<T extends keyof Members, K extends Kind<Members[T]>>(
    to: T,
    kind: K,
    message: In<Members[T], K> & object,
    own?: Own<In<Members[T], K>>,
  ): Promise<void> {
    await sendDown({ host: this.#root, to, kind, message, own }, this.#group);
  }
}
