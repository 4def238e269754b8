import { TroupeError } from "../../errors.ts";
import { Exchange, type FlatBlock, ownedRange } from "../../parallel/index.ts";
import { type LocalGroupProtocol, sentTo } from "../../protocols/index.ts";
import type { ActorRef, Down } from "../../runtime/index.ts";
import { attach, hold, moveRef, shareRef, type Tensor, type TensorRef } from "../../tensor/index.ts";

/** A split block's memory as one rank has it. */
export interface SharedBlock {
  /** Whole parameters; read-only but for the first member, who does not write them either. */
  readonly full: Tensor;
  /** The rank's own slice of the same memory. */
  readonly slice: Tensor;
}

/**
 * The collectives of shards in one process that share something: values pass by reference in messages, memory is shared,
 * nothing is copied. Every key names one place in the program, and each member takes part in it once.
 */
export class LocalGroup {
  /** Its name in messages: {@link groupName} of its ranks. */
  readonly name: string;
  readonly #member: number;
  readonly #peers: readonly ActorRef<LocalGroupProtocol>[];
  readonly #values: Exchange<Tensor | null>;
  /** Memory that the first member gave, perhaps before this one asked for it. */
  readonly #given = new Exchange<{ full: TensorRef; slice: TensorRef }>(1);

  /**
   * @param member - this shard's position
   * @param peers - the members in order, this one included
   */
  constructor(name: string, member: number, peers: readonly ActorRef<LocalGroupProtocol>[]) {
    this.name = name;
    this.#member = member;
    this.#peers = peers;
    this.#values = new Exchange(peers.length);
  }

  /**
   * All members' values under `key`, in order. `value` and what comes back are the caller's to dispose.
   * @throws {TroupeError} `COLLECTIVE_ABORTED` once a member has ended
   */
  all(key: string, value: Tensor | null): Promise<(Tensor | null)[]> {
    for (const { peer } of this.#others()) {
      const sent = value === null ? null : shareRef(value, sentTo(peer));
      peer.tell("contribute", { group: this.name, key, member: this.#member, value: sent });
    }
    this.#values.contribute(key, this.#member, value);
    return this.#values.all(key);
  }

  /** Gives every other member its slice of `full` to write, and all of it to read. Called by the first member. */
  give(layout: FlatBlock, full: Tensor): void {
    const others = this.#others();
    // Slices are cut before the whole is shared for reading: they stay writable.
    const slices = others.map(({ peer, member }) =>
      moveRef(sliceFor(layout, full, layout.group[member] as number), sentTo(peer)),
    );
    others.forEach(({ peer }, index) => {
      peer.tell("own", {
        group: this.name,
        block: layout.name,
        full: shareRef(full, sentTo(peer)),
        slice: slices[index] as TensorRef,
      });
    });
  }

  /** What the first member has given for a block; the caller's to dispose. */
  async given(block: string): Promise<SharedBlock> {
    const [given] = (await this.#given.all(block)) as [{ full: TensorRef; slice: TensorRef }];
    return { full: hold(() => attach(given.full)), slice: hold(() => attach(given.slice)) };
  }

  /** Takes in a peer's message. */
  contributed({ key, member, value }: LocalGroupProtocol["contribute"]["in"]): void {
    this.#values.contribute(key, member, value === null ? null : hold(() => attach(value)));
  }

  /** Takes in the first member's message. */
  owned({ block, full, slice }: LocalGroupProtocol["own"]["in"]): void {
    this.#given.contribute(block, 0, { full, slice });
  }

  /**
   * A member has ended: nothing that waits for it can become whole any more, and nothing may wait for ever.
   * @returns the error that everyone who waits gets
   */
  abort(down: Down): TroupeError {
    const reason = new TroupeError(
      "COLLECTIVE_ABORTED",
      `[group ${this.name}] expected every rank of the group to live: ${down.actor} has ended (see its own failure)`,
      { fields: { actor: down.actor, reason: down.reason, waitedFor: this.#values.pending() } },
    );
    this.#values.abort(reason);
    this.#given.abort(reason);
    return reason;
  }

  #others() {
    return this.#peers.flatMap((peer, member) => (member === this.#member ? [] : { peer, member }));
  }
}

/** @returns the name of the group of these ranks of the world, in order */
export function groupName(ranks: readonly number[]): string {
  return ranks.join(" ");
}

/** @returns the range of a block's whole parameters that `rank` owns, a view */
export function sliceFor(layout: FlatBlock, full: Tensor, rank: number): Tensor {
  const { begin, end } = ownedRange(layout, rank);
  return hold(() => full.narrow(0, begin, end - begin));
}
