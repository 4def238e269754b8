import { mostDrift } from "../../clock.ts";
import type { Heartbeat } from "./door.ts";

/** Bytes between two heartbeats that show that a link works, however late a heartbeat behind them is. */
const PLENTY_BYTES = 4_096;

/** A clock that advances by at most one heartbeat while this process is halted. */
export class OwnTime {
  readonly #everyMs: number;
  #turnedAt = performance.now();
  #passedMs = 0;

  /** @param everyMs - time between heartbeats; call {@link turn} at least as often */
  constructor({ everyMs }: Heartbeat) {
    this.#everyMs = everyMs;
  }

  /** Time since it was made. */
  get nowMs(): number {
    return this.#passedMs + Math.min(performance.now() - this.#turnedAt, this.#everyMs);
  }

  turn(): void {
    this.#passedMs = this.nowMs;
    this.#turnedAt = performance.now();
  }
}

/**
 * Measures how old the newest heartbeat of another process is, since it was sent and not since it arrived. Heartbeats carry
 * their time of sending by the sender's clock; lag above the least lag of any counts as delay on the way. Thus a link that
 * has become too slow is noticed although something still arrives.
 */
export class PeerLiveness {
  readonly #time: OwnTime;
  readonly #driftMs: number;
  /** Least difference between arrival by this process's clock and sending by the sender's. */
  #leastLagMs = Number.POSITIVE_INFINITY;
  #newestSentMs = Number.NEGATIVE_INFINITY;
  /** When the process last showed by other bytes that it is there, on this process's clock. */
  #knownAtMs: number;
  #numBytes = 0;

  /** Counts the process as alive from now on. */
  constructor(time: OwnTime, { everyMs }: Heartbeat) {
    this.#time = time;
    this.#driftMs = everyMs * mostDrift;
    this.#knownAtMs = time.nowMs;
  }

  /** Counts bytes that have arrived, those of heartbeats included. */
  countBytes(numBytes: number): void {
    this.#numBytes += numBytes;
  }

  /** Records a heartbeat. @param sentMs - time of sending on its sender's clock */
  heartbeat(sentMs: number): void {
    this.#leastLagMs = Math.min(this.#leastLagMs, this.#time.nowMs - sentMs);
    this.#newestSentMs = sentMs;
  }

  /** Updates the measurement; call it once per heartbeat. */
  turn(): void {
    this.#leastLagMs += this.#driftMs;
    if (this.#numBytes >= PLENTY_BYTES) this.#knownAtMs = this.#time.nowMs;
    this.#numBytes = 0;
  }

  /** Age of the newest heartbeat. */
  get ageMs(): number {
    const sentAt = this.#newestSentMs + this.#leastLagMs;
    return (
      this.#time.nowMs -
      Math.max(this.#knownAtMs, Number.isFinite(sentAt) ? sentAt : Number.NEGATIVE_INFINITY)
    );
  }
}
