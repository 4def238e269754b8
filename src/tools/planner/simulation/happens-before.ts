import { TroupeError } from "../../../errors/index.ts";

/**
 * Watches a simulated run and throws if something happens before its dependencies. Independent of the simulator: it
 * receives events with their times and keeps its own record.
 */
export class HappensBefore {
  /** Step for which a rank's block is gathered, number of updates, ... by {@link placeOf}. */
  readonly #gathered = new Map<number, number>();
  readonly #updated = new Map<number, number>();
  readonly #contributed = new Map<number, number>();
  readonly #reduced = new Map<number, number>();
  readonly #sent = new Map<number, Set<string>>();
  readonly #numBackwards: (rank: number, block: number) => number;

  /** @param numBackwards - number of backwards in a step after which a rank's gradient of a block is complete */
  constructor(numBackwards: (rank: number, block: number) => number) {
    this.#numBackwards = numBackwards;
  }

  /** Notes the end of a block's gather on the ranks of a group. */
  gathered(ranks: readonly number[], step: number, block: number): void {
    for (const rank of ranks)
      this.#demand(
        (this.#updated.get(placeOf(rank, block)) ?? 0) === step,
        () => `block ${block} to be updated ${step} times on rank ${rank} before it is gathered`,
      );
    for (const rank of ranks) this.#gathered.set(placeOf(rank, block), step);
  }

  released(rank: number, block: number): void {
    this.#gathered.delete(placeOf(rank, block));
  }

  /** Notes that a rank starts to compute with a block. */
  computes(rank: number, step: number, block: number): void {
    this.#demand(
      this.#gathered.get(placeOf(rank, block)) === step,
      () => `block ${block} to be gathered for step ${step} before rank ${rank} computes with it`,
    );
    this.#demand(
      (this.#updated.get(placeOf(rank, block)) ?? 0) === step,
      () => `block ${block} not to be updated while rank ${rank} computes with it in step ${step}`,
    );
  }

  /** Notes the end of a rank's backward of a block for one micro-batch. */
  contributed(rank: number, block: number): void {
    const key = placeOf(rank, block);
    this.#contributed.set(key, (this.#contributed.get(key) ?? 0) + 1);
  }

  /** Notes the start of a block's reduction on one rank of its group. */
  reduces(rank: number, step: number, block: number): void {
    const key = placeOf(rank, block);
    this.#demand(
      this.#contributed.get(key) === this.#numBackwards(rank, block),
      () => `the gradient of block ${block} of step ${step} to be complete before rank ${rank} reduces it`,
    );
    this.#contributed.delete(key);
    this.#reduced.set(placeOf(rank, block), step);
  }

  /** Notes the end of a block's update on a rank. */
  updated(rank: number, step: number, block: number): void {
    this.#demand(
      this.#reduced.get(placeOf(rank, block)) === step,
      () => `block ${block} to be reduced for step ${step} before rank ${rank} updates it`,
    );
    this.#demand(
      (this.#updated.get(placeOf(rank, block)) ?? 0) === step,
      () => `updates of block ${block} in order on rank ${rank}`,
    );
    this.#updated.set(placeOf(rank, block), step + 1);
  }

  /** Notes that something was sent to a rank. */
  sent(to: number, what: string): void {
    const sent = this.#sent.get(to);
    if (sent === undefined) this.#sent.set(to, new Set([what]));
    else sent.add(what);
  }

  /** Notes that a rank receives something. */
  received(rank: number, what: string): void {
    this.#demand(
      this.#sent.get(rank)?.delete(what) === true,
      () => `${what} to be sent before rank ${rank} receives it`,
    );
  }

  #demand(holds: boolean, say: () => string): void {
    if (holds) return;
    const expected = say();
    throw new TroupeError("SIMULATION_ORDER", {
      where: "simulation",
      expected,
      got: "something else",
      hint: "the simulator is wrong",
      fields: { expected },
    });
  }
}

/** One number for a rank's block: a run has millions of events, and string keys would take most of its time. */
const placeOf = (rank: number, block: number): number => rank * MAX_BLOCKS + block;

const MAX_BLOCKS = 2 ** 16;
