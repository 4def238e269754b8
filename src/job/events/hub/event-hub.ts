import { Observable } from "rxjs/internal/Observable";
import { filter } from "rxjs/internal/operators/filter";
import { Subject } from "rxjs/internal/Subject";
import { refuseUnknown, TroupeError } from "../../../errors/index.ts";
import { reportError } from "../error-report.ts";
import { type EventKind, schemaVersion, type TroupeEvent, type TroupeEventBody } from "../event.ts";
import type { SubscriberFailed } from "../kinds/delivery.ts";
import { describeEvent } from "../words/describe-event.ts";
import { BoundedQueue } from "./bounded-queue.ts";
import { callSubscriber, GuardedObservable } from "./call-subscriber.ts";
import { EventListeners } from "./event-listeners.ts";
import { EventStream } from "./event-stream.ts";
import { GuardedSink } from "./guarded-sink.ts";
import { type EventSelection, optionError, selector } from "./select-events.ts";
import type { EventSink } from "./sink.ts";
import { stampMs } from "./stamp.ts";

/** Selects the events of an {@link EventStream} and bounds its buffer. */
export interface EventStreamOptions<Kind extends EventKind = EventKind> extends EventSelection<Kind> {
  /** The most events held for a slow reader, 1,024 by default; beyond, the oldest are dropped and counted in `numDropped`. */
  readonly buffer?: number;
}

/** Options of an {@link EventHub}. */
export interface EventHubOptions {
  /** Milliseconds since 1970, the stamp of events. */
  readonly clock?: () => number;
  /** Number of latest events that a new subscriber receives first. Default: 1,024. */
  readonly numReplayed?: number;
  /** The most events held for slow subscribers. Default: 16,384. */
  readonly capacity?: number;
}

/** Subscribers are called for about this long in one turn of the event loop. */
const sliceMs = 8;
/** After a turn, subscribers rest for this many times the time that they took. */
const restRatio = 4;
/** The most time that flushing and closing spend on slow subscribers. */
const flushMs = 1000;

/**
 * Distributes the events of a run to sinks, subscribers and listeners. `emit` returns at once and never throws: sinks
 * write, and subscribers are called in a later turn of the event loop. Those that throw, or whose promise rejects, are
 * reported once and keep receiving events. Slow ones, or those whose promise does not settle, get at most a fifth of
 * the thread's time, and lose the oldest events beyond the capacity.
 */
export class EventHub {
  /** Every event, after the latest ones for a new subscriber; completes with {@link close}, never fails. */
  readonly events$: Observable<TroupeEvent>;
  /** Listeners to events of one kind, called like subscribers, for events from now on. */
  readonly listeners = new EventListeners((error, kind) => this.#failed(`a listener to ${kind}`, error));
  readonly #clock: () => number;
  readonly #subject = new Subject<TroupeEvent>();
  /** The latest events that were delivered to subscribers, or would have been. */
  readonly #recent: BoundedQueue<TroupeEvent>;
  readonly #queue: BoundedQueue<TroupeEvent>;
  readonly #capacity: number;
  readonly #sinks = new Set<GuardedSink>();
  #draining: { cancel(): void } | undefined;
  #closed = false;

  constructor(options: EventHubOptions = {}) {
    this.#clock = options.clock ?? stampMs;
    this.#recent = new BoundedQueue(options.numReplayed ?? 1024);
    this.#capacity = options.capacity ?? 16_384;
    this.#queue = new BoundedQueue(this.#capacity);
    // Not a ReplaySubject, which moves all its items for each event.
    const replayed$ = new Observable<TroupeEvent>((subscriber) => {
      for (const event of this.#recent.items()) subscriber.next(event);
      return this.#subject.subscribe(subscriber);
    });
    this.events$ = new GuardedObservable(replayed$, (error) =>
      this.#failed("a subscriber to events$", error),
    );
  }

  /** Stamps an event and delivers it; does nothing after {@link close}. @param model - name of its live model, if it has one */
  emit(body: TroupeEventBody, model?: string): void {
    if (this.#closed) return;
    const event = this.#write(body, model);
    const isObserved = this.#subject.observed || this.listeners.isObserved;
    if (this.#queue.length === 0 && !isObserved) this.#recent.push(event);
    else this.#queue.push(event);
    if (this.#queue.length > 0) this.#draining ??= soon(() => this.#drain());
  }

  /**
   * Adds a sink for every event from now on; the hub closes it with itself. @returns removes it again, without closing it
   * @throws {TroupeError} `OPTION` for an object without `write` or `close`
   */
  addSink(sink: EventSink): () => void {
    checkSink(sink);
    const report = (failure: SubscriberFailed) => this.#report(failure);
    const guarded = new GuardedSink(sink, { capacity: this.#capacity, report });
    this.#sinks.add(guarded);
    void callSubscriber(
      () => sink.attach?.((body) => this.#later(body)),
      (error) => this.#failed(`attach of ${guarded.name}`, error),
    );
    return () => this.#sinks.delete(guarded);
  }

  /** Returns the events as an async iterator, from the latest ones on. @param isMeant - selects further @throws {TroupeError} `OPTION` */
  events<Kind extends EventKind = EventKind>(
    options: EventStreamOptions<Kind> = {},
    isMeant: (event: TroupeEvent) => boolean = () => true,
  ): EventStream<Kind> {
    refuseUnknown("OPTION", "events", options, { kinds: true, sample: true, buffer: true });
    const { buffer = 1024 } = options;
    const meaning = "the number of events held for a slow reader";
    if (!Number.isSafeInteger(buffer) || buffer < 1)
      throw optionError("buffer", "a whole number ≥ 1", buffer, meaning);
    // One after the other: a sample counts those that are meant.
    return new EventStream(this.events$.pipe(filter(isMeant), filter(selector(options))), buffer);
  }

  /** Delivers all emitted events to subscribers, at most a second to slow ones, so that code that waits for one can go on. */
  flush(): void {
    if (this.#closed) return;
    this.#draining?.cancel();
    this.#draining = undefined;
    const begin = performance.now();
    while (this.#queue.length > 0 && performance.now() - begin < flushMs)
      this.#deliver(this.#queue.shift() as TroupeEvent);
    this.#drain();
  }

  /** Delivers remaining events, for at most a second to slow subscribers, completes `events$` and closes the sinks. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#draining?.cancel();
    const begin = performance.now();
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      this.#deliver(event);
      // The last event says how the run ended.
      if (performance.now() - begin > flushMs) this.#queue.keepNewest(1);
    }
    this.#subject.complete();
    // The first sink closes last: the console can then still report on the others.
    for (const sink of [...this.#sinks].reverse()) {
      this.#sinks.delete(sink);
      await sink.close();
    }
  }

  #write(body: TroupeEventBody, model?: string): TroupeEvent {
    const named = model === undefined ? body : { ...body, model };
    const event: TroupeEvent = { ...named, timeMs: this.#clock(), schemaVersion };
    for (const sink of this.#sinks) sink.write(event);
    return event;
  }

  /** Reports on a sink or a subscriber after the current event, so that the others get that event first. */
  #later(body: TroupeEventBody): void {
    queueMicrotask(() => {
      if (!this.#closed) {
        this.emit(body);
        return;
      }
      const { text } = describeEvent(this.#write(body)) ?? {};
      if (this.#sinks.size === 0 && text !== undefined) process.emitWarning(text, "TroupeWarning");
    });
  }

  #drain(): void {
    const begin = performance.now();
    let elapsedMs = 0;
    while (this.#queue.length > 0 && elapsedMs < sliceMs) {
      this.#deliver(this.#queue.shift() as TroupeEvent);
      elapsedMs = performance.now() - begin;
    }
    const restMs = restRatio * elapsedMs;
    this.#draining = restMs < 1 ? undefined : later(() => this.#drain(), restMs);
    if (this.#queue.length > 0) return;
    const numDropped = this.#queue.takeNumDropped();
    if (numDropped > 0) this.emit({ kind: "events.dropped", numDropped });
  }

  #deliver(event: TroupeEvent): void {
    this.#recent.push(event);
    this.#subject.next(event);
    this.listeners.emit(event);
  }

  #failed(subscriber: string, error: unknown): void {
    this.#report({ kind: "subscriber.failed", subscriber, error: reportError(error) });
  }

  #report(failure: SubscriberFailed): void {
    // Also to standard error: the failed subscriber may be a script's only one.
    const { subscriber, error } = failure;
    if (failure.numLost === undefined && !this.#closed)
      process.emitWarning(
        `${subscriber} failed, training goes on: ${error.stack ?? error.message}`,
        "TroupeWarning",
      );
    this.#later(failure);
  }
}

function checkSink(sink: unknown): void {
  const { write, close } = (sink ?? {}) as Partial<EventSink>;
  if (typeof write === "function" && typeof close === "function") return;
  throw new TroupeError("OPTION", {
    where: "addSink",
    expected: "a sink with functions write(event) and close()",
    got: typeof write === "function" ? "one without close()" : "one without write(event)",
    hint: "both may be async",
  });
}

function soon(body: () => void): { cancel(): void } {
  const immediate = setImmediate(body);
  return { cancel: () => clearImmediate(immediate) };
}

function later(body: () => void, delayMs: number): { cancel(): void } {
  const timer = setTimeout(body, delayMs);
  return { cancel: () => clearTimeout(timer) };
}
