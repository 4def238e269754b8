import type { Clock, Timer } from "../clock.ts";
import type { Address } from "../protocol/address.ts";
import { AskTimeout } from "../protocol/failure.ts";

/** Callbacks for the answer to a question. */
export interface Settle {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** A question waiting for its answer. */
export interface OpenAsk {
  readonly target: Address;
  readonly kind: string;
  /** On the process's clock. */
  readonly deadlineMs: number;
  /** The caller's deadline, for the error message. */
  readonly allowedMs: number;
  readonly settle: Settle;
}

/** The open questions of one actor. One timer, set to the earliest deadline, serves them all. */
export class Asks {
  readonly #clock: Clock;
  readonly #open = new Map<number, OpenAsk>();
  #lastId = 0;
  #timer: Timer | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a question and returns the id that its answer will carry. */
  enter(ask: OpenAsk): number {
    this.#lastId += 1;
    this.#open.set(this.#lastId, ask);
    if (ask.deadlineMs < this.#timerAtMs) this.#arm(ask.deadlineMs);
    return this.#lastId;
  }

  /** Removes and returns a question; undefined if it expired, failed or was answered before. */
  settle(id: number): OpenAsk | undefined {
    const ask = this.#open.get(id);
    if (ask !== undefined) this.#open.delete(id);
    return ask;
  }

  /** Rejects every question to this actor. Returns how many there were. */
  rejectAllTo(uid: number, error: (ask: OpenAsk) => Error): number {
    let numRejected = 0;
    for (const [id, ask] of this.#open) {
      if (ask.target.uid !== uid) continue;
      this.#open.delete(id);
      ask.settle.reject(error(ask));
      numRejected += 1;
    }
    return numRejected;
  }

  /** Rejects those whose deadline has passed. */
  expire(): void {
    const nowMs = this.#clock.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [id, ask] of this.#open) {
      if (ask.deadlineMs <= nowMs) {
        this.#open.delete(id);
        ask.settle.reject(new AskTimeout(ask.target, ask.kind, ask.allowedMs));
      } else nextMs = Math.min(nextMs, ask.deadlineMs);
    }
    this.#timer?.cancel();
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    if (nextMs < Number.POSITIVE_INFINITY) this.#arm(nextMs);
  }

  /** Stops the timer; open questions stay open. */
  close(): void {
    this.#timer?.cancel();
  }

  #arm(atMs: number): void {
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    const delayMs = Math.max(0, Math.ceil(atMs - this.#clock.now()));
    this.#timer = this.#clock.after(delayMs, () => this.expire(), { background: true });
  }
}
