/** Starts, awaits and releases gathers; a ticket stands for one under way. */
export interface GatherPort<Ticket> {
  /** Starts gathering a block; does not wait. */
  start(block: number): Ticket;
  /** Waits until the gather has ended: the block's parameters are complete. */
  wait(ticket: Ticket): void;
  /** Releases a block's gathered parameters: one call for each gather of a block that is not resident. */
  release(block: number): void;
}

/** The blocks' properties that {@link Prefetcher} needs. */
export interface PrefetchPlan {
  /** Bytes a gathered block takes, by block index. */
  readonly sizeBytes: readonly number[];
  /** Blocks that, once gathered, stay until the pass ends (ZeRO level below 3, and the root). */
  readonly resident: readonly boolean[];
  /** How far gathers run ahead of the computation, in bytes, but at least by a block; 0: not at all; Infinity: all at once. */
  readonly windowBytes: number;
}

/**
 * Runs gathers ahead of the computation. The first pass of a kind (a training step, an evaluation) records in which order
 * blocks are needed; from then on, each need tops the window up along that order. A pass that strays from the record falls back
 * to gathering on demand and is recorded again, so a wrong guess costs time, never correctness.
 */
export class Prefetcher<Ticket> {
  readonly #port: GatherPort<Ticket>;
  readonly #plan: PrefetchPlan;
  readonly #records = new Map<string, number[]>();
  #expected: readonly number[] = [];
  #recorded: number[] = [];
  #onTrack = false;
  /** Gathers started and not yet waited for. */
  readonly #inFlight = new Map<number, Ticket>();
  readonly #gathered = new Set<number>();
  #aheadIndex = 0;
  #aheadBytes = 0;

  constructor(port: GatherPort<Ticket>, plan: PrefetchPlan) {
    this.#port = port;
    this.#plan = plan;
  }

  /**
   * Drops gathered blocks (the parameters may have changed) and starts the first gathers of a new pass.
   * @param kind - passes of one kind are expected to need the same blocks in the same order
   */
  begin(kind: string): void {
    this.#drain();
    for (const block of this.#gathered) this.#giveUp(block);
    this.#expected = this.#records.get(kind) ?? [];
    this.#recorded = [];
    this.#records.set(kind, this.#recorded);
    this.#onTrack = this.#expected.length > 0;
    this.#aheadIndex = 0;
    this.#topUp();
  }

  /** Waits until `block` is gathered, then starts the next gathers. */
  need(block: number): void {
    if (this.#gathered.has(block)) return;
    this.#onTrack &&= this.#expected[this.#recorded.length] === block;
    this.#recorded.push(block);
    const ticket = this.#take(block) ?? this.#port.start(block);
    this.#aheadIndex = Math.max(this.#aheadIndex, this.#recorded.length);
    // Counts as gathered: if it is needed again next, the window must not gather it a second time.
    this.#gathered.add(block);
    this.#topUp();
    this.#port.wait(ticket);
  }

  /**
   * Releases a block's gathered parameters, unless they are still needed. Resident blocks stay until the pass ends, and so does a
   * block that is needed again next: the last one of forward is the first one of backward.
   */
  release(block: number): void {
    if (this.#plan.resident[block]) return;
    if (this.#onTrack && this.#expected[this.#recorded.length] === block) this.#recorded.push(block);
    else this.#giveUp(block);
  }

  #giveUp(block: number): void {
    if (this.#gathered.delete(block) && !this.#plan.resident[block]) this.#port.release(block);
  }

  #take(block: number): Ticket | undefined {
    const ticket = this.#inFlight.get(block);
    if (ticket === undefined) return undefined;
    this.#inFlight.delete(block);
    this.#aheadBytes -= this.#plan.sizeBytes[block] ?? 0;
    return ticket;
  }

  #topUp(): void {
    while (this.#onTrack && this.#aheadIndex < this.#expected.length) {
      const block = this.#expected[this.#aheadIndex] as number;
      if (block === this.#expected[this.#aheadIndex - 1]) {
        // It will be kept: the blocks after it may be gathered while it is computed with.
        this.#aheadIndex += 1;
        continue;
      }
      const sizeBytes = this.#plan.sizeBytes[block] ?? 0;
      if (this.#inFlight.has(block) || this.#gathered.has(block)) return;
      if (!this.#reaches(sizeBytes)) return;
      this.#inFlight.set(block, this.#port.start(block));
      this.#aheadBytes += sizeBytes;
      this.#aheadIndex += 1;
    }
  }

  /** Any window but 0 reaches the next block, however large: one ahead is what hides a gather at all. */
  #reaches(sizeBytes: number): boolean {
    const { windowBytes } = this.#plan;
    return this.#aheadBytes + sizeBytes <= windowBytes || (windowBytes > 0 && this.#inFlight.size === 0);
  }

  /** Started gathers are awaited, wanted or not: an answer must not be taken for a later one's. */
  #drain(): void {
    for (const block of [...this.#inFlight.keys()]) {
      const ticket = this.#take(block);
      if (ticket === undefined) continue;
      this.#port.wait(ticket);
      this.#gathered.add(block);
    }
  }
}
