import type { Observable, Subscription } from "rxjs";
import type { EventKind, EventOf } from "../event.ts";
import { BoundedQueue } from "./bounded-queue.ts";

/** Events as an async iterator. A slow reader loses the oldest and delays nothing; leaving the loop ends the subscription. */
export class EventStream<Kind extends EventKind = EventKind> implements AsyncIterableIterator<EventOf<Kind>> {
  readonly #queue: BoundedQueue<EventOf<Kind>>;
  readonly #subscription: Subscription;
  readonly #waiting: ((result: IteratorResult<EventOf<Kind>>) => void)[] = [];
  #ended = false;

  /** @param capacity - the most events held for the reader */
  constructor(events$: Observable<EventOf<Kind>>, capacity: number) {
    this.#queue = new BoundedQueue(capacity);
    this.#subscription = events$.subscribe({
      next: (event) => this.#receive(event),
      complete: () => this.#end(),
    });
  }

  /** Number of events that the reader lost. */
  get numDropped(): number {
    return this.#queue.numDropped;
  }

  next(): Promise<IteratorResult<EventOf<Kind>>> {
    const value = this.#queue.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async return(): Promise<IteratorResult<EventOf<Kind>>> {
    this.#subscription.unsubscribe();
    this.#queue.keepNewest(0);
    this.#end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #receive(event: EventOf<Kind>): void {
    const reader = this.#waiting.shift();
    if (reader === undefined) this.#queue.push(event);
    else reader({ done: false, value: event });
  }

  #end(): void {
    this.#ended = true;
    for (const reader of this.#waiting.splice(0)) reader({ done: true, value: undefined });
  }
}
