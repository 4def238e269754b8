import { TroupeError } from "../errors.ts";
import { Exchange, type FlatBlock, ownedRange } from "../parallel/index.ts";
import type { ActorRef, Down } from "../runtime/index.ts";
import { attach, hold, moveRef, shareRef, type Tensor, type TensorRef } from "../tensor/index.ts";
import { sentTo } from "./recipient.ts";

/** What the shards of one process tell each other. */
export type LocalGroupProtocol = {
  /** One rank's value of a collective. */
  contribute: { in: { key: string; rank: number; value: TensorRef | null } };
  /** A split block's memory, from rank 0: the whole to read, the receiver's slice to write. */
  own: { in: { block: number; full: TensorRef; slice: TensorRef } };
};

/** A split block's memory as one rank has it. */
export interface SharedBlock {
  /** Whole parameters; read-only but for rank 0, who does not write them either. */
  readonly full: Tensor;
  /** The rank's own slice of the same memory. */
  readonly slice: Tensor;
}

/**
 * The collectives of shards in one process: values pass by reference in messages, memory is shared, nothing is copied.
 * Every key names one place in the program, and each rank takes part in it once.
 */
export class LocalGroup {
  readonly #rank: number;
  readonly #values: Exchange<Tensor | null>;
  /** Memory that rank 0 gave, perhaps before this rank asked for it. */
  readonly #given = new Exchange<{ full: TensorRef; slice: TensorRef }>(1);
  #peers: readonly ActorRef<LocalGroupProtocol>[] = [];

  constructor(rank: number, numRanks: number) {
    this.#rank = rank;
    this.#values = new Exchange(numRanks);
  }

  /** @param peers - in rank order, this one included */
  join(peers: readonly ActorRef<LocalGroupProtocol>[]): void {
    this.#peers = peers;
  }

  /**
   * All ranks' values under `key`, in rank order. `value` and what comes back are the caller's to dispose.
   * @throws {TroupeError} `COLLECTIVE_ABORTED` once a rank has ended
   */
  all(key: string, value: Tensor | null): Promise<(Tensor | null)[]> {
    for (const { peer } of this.#others()) {
      const sent = value === null ? null : shareRef(value, sentTo(peer));
      peer.tell("contribute", { key, rank: this.#rank, value: sent });
    }
    this.#values.contribute(key, this.#rank, value);
    return this.#values.all(key);
  }

  /** Gives every other rank its slice of `full` to write, and all of it to read. Called by rank 0. */
  give(layout: FlatBlock, full: Tensor): void {
    const others = this.#others();
    // Slices are cut before the whole is shared for reading: they stay writable.
    const slices = others.map(({ peer, rank }) => moveRef(sliceFor(layout, full, rank), sentTo(peer)));
    others.forEach(({ peer }, index) => {
      peer.tell("own", {
        block: layout.index,
        full: shareRef(full, sentTo(peer)),
        slice: slices[index] as TensorRef,
      });
    });
  }

  /** What rank 0 has given for a block; the caller's to dispose. */
  async given(block: number): Promise<SharedBlock> {
    const [given] = (await this.#given.all(`block ${block}`)) as [{ full: TensorRef; slice: TensorRef }];
    return { full: hold(() => attach(given.full)), slice: hold(() => attach(given.slice)) };
  }

  /** Takes in a peer's message. */
  contributed(key: string, rank: number, value: TensorRef | null): void {
    this.#values.contribute(key, rank, value === null ? null : hold(() => attach(value)));
  }

  /** Takes in rank 0's message. */
  owned(block: number, full: TensorRef, slice: TensorRef): void {
    this.#given.contribute(`block ${block}`, 0, { full, slice });
  }

  /**
   * A member has ended: nothing that waits for it can become whole any more, and nothing may wait for ever.
   * @returns the error that everyone who waits gets
   */
  abort(down: Down): TroupeError {
    const reason = new TroupeError(
      "COLLECTIVE_ABORTED",
      `[shard ${this.#rank}] expected every rank of the group to live: ${down.actor} has ended (see its own failure)`,
      { fields: { actor: down.actor, reason: down.reason, waitedFor: this.#values.pending() } },
    );
    this.#values.abort(reason);
    this.#given.abort(reason);
    return reason;
  }

  #others() {
    return this.#peers.flatMap((peer, rank) => (rank === this.#rank ? [] : { peer, rank }));
  }
}

/** @returns the range of a block's whole parameters that `rank` owns, a view */
export function sliceFor(layout: FlatBlock, full: Tensor, rank: number): Tensor {
  const { begin, end } = ownedRange(layout, rank);
  return hold(() => full.narrow(0, begin, end - begin));
}
