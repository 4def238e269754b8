import { TroupeError } from "../../../errors/index.ts";
import { type ErrorReport, reportError } from "../error-report.ts";
import type { TroupeEvent } from "../event.ts";
import type { SubscriberFailed } from "../kinds/delivery.ts";
import { formatDuration } from "../words/format.ts";
import { BoundedQueue } from "./bounded-queue.ts";
import { callSubscriber } from "./call-subscriber.ts";
import type { EventSink } from "./sink.ts";

/** The share of the thread's time that a sink may take, beyond {@link burstMs}. */
const share = 1 / 5;
/** Milliseconds of calls that a sink may always take. */
const burstMs = 100;
/** A `write` that takes longer than this is reported. */
const answerMs = 10_000;
/** How long closing runs a synchronous sink for the waiting events. */
const drainMs = 1000;
/** How long closing waits for a sink without a `closeDeadlineMs`. */
const closeMs = 10_000;
/** How long closing waits at least for a sink's `close`, however long its last `write` took. */
const leastCloseMs = 1000;

/** Options of {@link GuardedSink}. */
export interface GuardedSinkOptions {
  /** The most events held for it. */
  readonly capacity: number;
  /** Receives the sink's first error, and on close the count of all. */
  readonly report: (failure: SubscriberFailed) => void;
}

/**
 * Calls a user's sink, which may throw, hang or be slow. A quick sink is called at once. Events wait, up to a bound,
 * for a sink whose promise is pending or that took more than its share of the thread. Reports its first error, and on
 * close the numbers of errors and lost events.
 */
export class GuardedSink {
  readonly #sink: EventSink;
  readonly #options: GuardedSinkOptions;
  readonly #queue: BoundedQueue<TroupeEvent>;
  /** Resolves once the sink may be called again; undefined where it may now. */
  #busy: Promise<void> | undefined;
  #rest: { readonly end: () => void } | undefined;
  /** Time that the sink has taken beyond its share of the thread. */
  #debtMs = 0;
  #debtAtMs = 0;
  #error: ErrorReport | undefined;
  #numFailed = 0;
  #isClosing = false;

  constructor(sink: EventSink, options: GuardedSinkOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#queue = new BoundedQueue(options.capacity);
  }

  get name(): string {
    const { name } = this.#sink;
    if (typeof name === "string" && name !== "") return `sink ${name}`;
    const made: unknown = (this.#sink as { readonly constructor?: { readonly name?: unknown } }).constructor
      ?.name;
    return typeof made === "string" && made !== "" && made !== "Object" ? `sink ${made}` : "a sink";
  }

  /** Delivers an event, now or later; never throws. */
  write(event: TroupeEvent): void {
    if (event.model !== undefined && this.#sink.takesModels !== true) return;
    if (this.#busy !== undefined) this.#queue.push(event);
    else this.#call(event);
  }

  /** Delivers waiting events and closes the sink, both within its deadline; never rejects. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#rest?.end();
    const { closeDeadlineMs = closeMs } = this.#sink;
    const begin = performance.now();
    if (!(await within(closeDeadlineMs, this.#drain())))
      this.#failUnanswered("write(event)", closeDeadlineMs);
    const numLost = this.#queue.takeNumDropped() + this.#queue.length;
    // A promise that settles later must not lead to another call.
    this.#queue.keepNewest(0);
    const closing = callSubscriber(
      () => this.#sink.close(),
      (error) => this.#fail(error, "close()"),
    );
    const leftMs = Math.max(leastCloseMs, closeDeadlineMs - (performance.now() - begin));
    if (closing !== undefined && !(await within(leftMs, closing))) this.#failUnanswered("close()", leftMs);
    this.#reportCounts(numLost);
  }

  #call(event: TroupeEvent): void {
    const begin = performance.now();
    const answer = callSubscriber(
      () => this.#sink.write(event),
      (error) => this.#fail(error, "write(event)"),
    );
    const end = performance.now();
    this.#debtMs = Math.max(0, this.#debtMs - (begin - this.#debtAtMs) * share) + (end - begin);
    this.#debtAtMs = end;
    if (answer !== undefined) this.#holdUntil(this.#watched(answer));
    else if (this.#debtMs > burstMs && !this.#isClosing)
      this.#holdUntil(this.#resting((this.#debtMs - burstMs) / share));
  }

  /** Holds events back until `ready` resolves, and then delivers them. */
  #holdUntil(ready: Promise<void>): void {
    this.#busy = ready.then(() => {
      this.#busy = undefined;
      while (!this.#isClosing && this.#busy === undefined && this.#queue.length > 0)
        this.#call(this.#queue.shift() as TroupeEvent);
    });
  }

  /** Delivers all waiting events at the end, without regard to its share of the thread, until closing's time is over. */
  async #drain(): Promise<void> {
    this.#debtMs = 0;
    while (this.#busy !== undefined || this.#queue.length > 0) {
      await this.#busy;
      // The last event says how the run ended.
      if (this.#debtMs > drainMs) this.#queue.keepNewest(1);
      if (this.#queue.length > 0) this.#call(this.#queue.shift() as TroupeEvent);
    }
  }

  async #watched(answer: Promise<void>): Promise<void> {
    const timer = setTimeout(() => this.#failUnanswered("write(event)", answerMs), answerMs).unref();
    await answer;
    clearTimeout(timer);
  }

  #resting(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, durationMs);
      const end = () => {
        clearTimeout(timer);
        this.#rest = undefined;
        resolve();
      };
      this.#rest = { end };
    });
  }

  #fail(thrown: unknown, call: string): void {
    this.#numFailed += 1;
    if (this.#error !== undefined) return;
    this.#error = reportError(thrown);
    this.#options.report({
      kind: "subscriber.failed",
      subscriber: `${call} of ${this.name}`,
      error: this.#error,
    });
  }

  #failUnanswered(call: string, afterMs: number): void {
    const { name } = this;
    const error = sinkError(
      name,
      `${call} to end within ${formatDuration(afterMs)}`,
      "a promise that has not settled",
    );
    this.#fail(error, call);
  }

  /** Reports errors and lost events that were not reported when they happened. */
  #reportCounts(numLost: number): void {
    const { name: subscriber } = this;
    const numFailed = this.#numFailed;
    if (numFailed < 2 && numLost === 0) return;
    const behind = () =>
      reportError(sinkError(subscriber, "to receive events as fast as they come", "a slow sink"));
    this.#options.report({
      kind: "subscriber.failed",
      subscriber,
      error: this.#error ?? behind(),
      numFailed,
      numLost,
    });
  }
}

/** Returns whether some work, which never rejects, ends within a time. */
async function within(durationMs: number, work: Promise<void>): Promise<boolean> {
  if (durationMs === Number.POSITIVE_INFINITY) {
    await work;
    return true;
  }
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), durationMs);
  void work.then(() => resolve(true));
  const isOver = await promise;
  clearTimeout(timer);
  return isOver;
}

function sinkError(where: string, expected: string, got: string): TroupeError {
  const hint = "events wait for a sink up to a bound; give what it calls a time limit";
  return new TroupeError("SINK", { where, expected, got, hint });
}
