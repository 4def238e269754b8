import type { Address } from "../protocol/address.ts";
import type { Timer } from "../clock.ts";
import { Queue } from "../mailbox/queue.ts";

/** What the reading end of a stream needs of its endpoint. */
export interface ConsumerLine {
  readonly target: Address;
  readonly credits: number;
  /** Grants the producer so many items more. */
  want(count: number): void;
  /** Tells the producer to stop. */
  cancel(): void;
  /** No more items will be taken. */
  finished(): void;
  /** Starts the timer of the longest silence. */
  expireAfter(run: () => void): Timer;
  /** The error of a silence that was too long. */
  silence(): Error;
}

interface Waiter {
  resolve(result: IteratorResult<unknown>): void;
  reject(error: Error): void;
  readonly timer: Timer;
}

/** The reading end of a stream: an async iterator that never lets the producer run more than its credits ahead. */
export class StreamConsumer implements AsyncIterableIterator<unknown> {
  readonly target: Address;
  readonly #line: ConsumerLine;
  readonly #items = new Queue<unknown>();
  readonly #waiters = new Queue<Waiter>();
  #ended = false;
  #error: Error | undefined;
  #numTaken = 0;

  constructor(line: ConsumerLine) {
    this.target = line.target;
    this.#line = line;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown>> {
    if (this.#items.size > 0) return Promise.resolve(this.#take(this.#items.shift()));
    if (this.#ended) return this.#finish();
    return new Promise((resolve, reject) => {
      const timer = this.#line.expireAfter(() => this.#giveUp());
      this.#waiters.push({ resolve, reject, timer });
    });
  }

  return(): Promise<IteratorResult<unknown>> {
    if (!this.#ended) this.#line.cancel();
    this.#items.drain();
    this.end(undefined);
    return Promise.resolve({ done: true, value: undefined });
  }

  /** An item came. */
  put(item: unknown): void {
    if (this.#ended) return;
    const waiter = this.#nextWaiter();
    if (waiter === undefined) this.#items.push(item);
    else waiter.resolve(this.#take(item));
  }

  /** The stream is over, or broke with `error`; items already here are still handed out. */
  end(error: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#line.finished();
    for (let waiter = this.#nextWaiter(); waiter !== undefined; waiter = this.#nextWaiter()) {
      this.#finish().then(waiter.resolve, waiter.reject);
    }
  }

  /** Counts one item taken; credit goes back half a window at a time. */
  #take(item: unknown): IteratorResult<unknown> {
    this.#numTaken += 1;
    if (this.#numTaken >= Math.max(1, this.#line.credits >> 1) && !this.#ended) {
      this.#line.want(this.#numTaken);
      this.#numTaken = 0;
    }
    return { done: false, value: item };
  }

  #finish(): Promise<IteratorResult<unknown>> {
    const error = this.#error;
    this.#error = undefined; // an iterator throws once and is done afterwards
    return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
  }

  #giveUp(): void {
    this.#line.cancel();
    this.end(this.#line.silence());
  }

  #nextWaiter(): Waiter | undefined {
    const waiter = this.#waiters.shift();
    waiter?.timer.cancel();
    return waiter;
  }
}
