import type { Heartbeat } from "./door.ts";

/** So much between two heartbeats is no trickle: a link that brings it carries, however long a sign behind it was under way. */
const PLENTY_BYTES = 4_096;
/** Clocks of two hosts drift apart by less than this share: a sign's least time under way is forgotten so fast. */
const DRIFT = 1e-3;

/** Time as this process lives it: of a stretch in which it stands still no more passes than one heartbeat. */
export class OwnTime {
  readonly #everyMs: number;
  #turnedAt = performance.now();
  #passedMs = 0;

  /** @param everyMs - of a heartbeat; {@link turn} is to be called at least so often */
  constructor({ everyMs }: Heartbeat) {
    this.#everyMs = everyMs;
  }

  /** Since it was made. */
  get nowMs(): number {
    return this.#passedMs + Math.min(performance.now() - this.#turnedAt, this.#everyMs);
  }

  turn(): void {
    this.#passedMs = this.nowMs;
    this.#turnedAt = performance.now();
  }
}

/**
 * How old the newest sign of life of another process is: since it was sent, not since it came. Signs say when they were sent, by the
 * sender's clock; what they take above the least that any has taken, they were held up on their way. So a link that has become too slow is
 * told from one that carries, though something still comes.
 */
export class SignsOfLife {
  readonly #time: OwnTime;
  readonly #driftMs: number;
  /** By how much this process's time is ahead of the sender's clock, and the least time under way. */
  #leastLagMs = Number.POSITIVE_INFINITY;
  #newestSentMs = Number.NEGATIVE_INFINITY;
  /** On this process's time, since when it is known to be there without a sign that says so. */
  #knownAtMs: number;
  #numBytes = 0;

  /** Begins with the process being there. */
  constructor(time: OwnTime, { everyMs }: Heartbeat) {
    this.#time = time;
    this.#driftMs = everyMs * DRIFT;
    this.#knownAtMs = time.nowMs;
  }

  /** So many bytes have come, a sign's among them. */
  came(numBytes: number): void {
    this.#numBytes += numBytes;
  }

  /** A sign has come. @param sentMs - on its sender's clock */
  sign(sentMs: number): void {
    this.#leastLagMs = Math.min(this.#leastLagMs, this.#time.nowMs - sentMs);
    this.#newestSentMs = sentMs;
  }

  /** To be called at each heartbeat. */
  turn(): void {
    this.#leastLagMs += this.#driftMs;
    if (this.#numBytes >= PLENTY_BYTES) this.#knownAtMs = this.#time.nowMs;
    this.#numBytes = 0;
  }

  /** Of the newest sign. */
  get ageMs(): number {
    const sentAt = this.#newestSentMs + this.#leastLagMs;
    return (
      this.#time.nowMs -
      Math.max(this.#knownAtMs, Number.isFinite(sentAt) ? sentAt : Number.NEGATIVE_INFINITY)
    );
  }
}
