import { TroupeError } from "../../../errors/index.ts";

/**
 * Watches a simulated run, and objects where something happens before what it depends on. It knows nothing of how the
 * run is made: it is told what happens and when, and keeps its own account.
 */
export class HappensBefore {
  /** The step that a rank's block is whole for, how often it was updated, ... by {@link placeOf}. */
  readonly #gathered = new Map<number, number>();
  readonly #updated = new Map<number, number>();
  readonly #contributed = new Map<number, number>();
  readonly #reduced = new Map<number, number>();
  readonly #sent = new Map<number, Set<string>>();
  readonly #numBackwards: (rank: number, block: number) => number;

  /** @param numBackwards - after as many backwards of a step a rank's gradient of a block is whole */
  constructor(numBackwards: (rank: number, block: number) => number) {
    this.#numBackwards = numBackwards;
  }

  /** A gather of a block has ended on the ranks of a group. */
  gathered(ranks: readonly number[], step: number, block: number): void {
    for (const rank of ranks) {
      this.#demand(
        (this.#updated.get(placeOf(rank, block)) ?? 0) === step,
        () => `block ${block} to be updated ${step} times on rank ${rank} before it is gathered`,
      );
    }
    for (const rank of ranks) this.#gathered.set(placeOf(rank, block), step);
  }

  /** A rank has given a gathered block up. */
  released(rank: number, block: number): void {
    this.#gathered.delete(placeOf(rank, block));
  }

  /** A rank begins to compute with a block. */
  computes(rank: number, step: number, block: number): void {
    this.#demand(
      this.#gathered.get(placeOf(rank, block)) === step,
      () => `block ${block} to be whole for step ${step} before rank ${rank} computes with it`,
    );
    this.#demand(
      (this.#updated.get(placeOf(rank, block)) ?? 0) === step,
      () => `block ${block} not to be updated while rank ${rank} computes with it in step ${step}`,
    );
  }

  /** A rank's backward of a block has ended for one micro-batch. */
  contributed(rank: number, block: number): void {
    const key = placeOf(rank, block);
    this.#contributed.set(key, (this.#contributed.get(key) ?? 0) + 1);
  }

  /** The reduction of a block begins, on one rank of its group. */
  reduces(rank: number, step: number, block: number): void {
    const key = placeOf(rank, block);
    this.#demand(
      this.#contributed.get(key) === this.#numBackwards(rank, block),
      () => `the gradient of block ${block} of step ${step} to be whole before rank ${rank} reduces it`,
    );
    this.#contributed.delete(key);
    this.#reduced.set(placeOf(rank, block), step);
  }

  /** An update of a block has ended on a rank. */
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

  /** Something was sent to a rank. */
  sent(to: number, what: string): void {
    const sent = this.#sent.get(to);
    if (sent === undefined) this.#sent.set(to, new Set([what]));
    else sent.add(what);
  }

  /** A rank receives something. */
  received(rank: number, what: string): void {
    this.#demand(
      this.#sent.get(rank)?.delete(what) === true,
      () => `${what} to be sent before rank ${rank} receives it`,
    );
  }

  #demand(holds: boolean, say: () => string): void {
    if (holds) return;
    const expected = say();
    throw new TroupeError(
      "SIMULATION_ORDER",
      { where: "simulation", expected, got: "something else", hint: "the simulator is wrong" },
      {
        fields: { expected },
      },
    );
  }
}

/** One number for a rank's block: a run has millions of events, and texts would be most of its time. */
function placeOf(rank: number, block: number): number {
  return rank * MAX_BLOCKS + block;
}

const MAX_BLOCKS = 2 ** 16;
