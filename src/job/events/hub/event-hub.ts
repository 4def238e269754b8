import { Observable } from "rxjs/internal/Observable";
import { filter } from "rxjs/internal/operators/filter";
import { Subject } from "rxjs/internal/Subject";
import { TroupeError, unknownNames } from "../../../errors/index.ts";
import { reportError } from "../error-report.ts";
import { type EventKind, schemaVersion, type TroupeEvent, type TroupeEventBody } from "../event.ts";
import type { SubscriberFailed } from "../kinds/delivery.ts";
import { describeEvent } from "../words/describe-event.ts";
import { BoundedQueue } from "./bounded-queue.ts";
import { callSubscriber } from "./call-subscriber.ts";
import { EventListeners } from "./event-listeners.ts";
import { EventStream } from "./event-stream.ts";
import { GuardedObservable } from "./guarded-observable.ts";
import { GuardedSink } from "./guarded-sink.ts";
import { type EventSelection, optionError, selector } from "./select-events.ts";
import type { EventSink } from "./sink.ts";
import { stampMs } from "./stamp.ts";

/** Which events an {@link EventStream} brings, and how many wait for its reader. */
export interface EventStreamOptions<Kind extends EventKind = EventKind> extends EventSelection<Kind> {
  /** Events held for a slow reader at most: 1,024. Beyond it the oldest go, and `numDropped` of the stream counts them. */
  readonly buffer?: number;
}

/** What an {@link EventHub} may be told. */
export interface EventHubOptions {
  /** Milliseconds since 1970, the stamp of events. */
  readonly clock?: () => number;
  /** Latest events that a new subscriber receives first: 1,024. */
  readonly numReplayed?: number;
  /** Events held for slow subscribers at most: 16,384. */
  readonly capacity?: number;
}

/** Subscribers are called for about this long in one turn of the event loop… */
const sliceMs = 8;
/** …and then not for this many times as long as they took. */
const restRatio = 4;
/** How long flushing and closing call slow subscribers. */
const flushMs = 1000;

/**
 * Where the events of a run come together. `emit` returns at once and never throws: sinks write, subscribers are
 * called in a later turn of the event loop. Sinks and subscribers that throw, or whose promise rejects, are reported once and go
 * on receiving; those that are slow, or whose promise does not settle, get at most a fifth of the thread's time, and lose
 * the oldest events beyond the capacity.
 */
export class EventHub {
  /** Every event, the latest ones again for a new subscriber; completes with {@link close}, never fails. */
  readonly events$: Observable<TroupeEvent>;
  /** Who listens to events of one kind: called as subscribers are, from now on. */
  readonly listeners = new EventListeners((error, kind) => this.#failed(`a listener to ${kind}`, error));
  readonly #clock: () => number;
  readonly #subject = new Subject<TroupeEvent>();
  /** The latest ones that subscribers were called with, or would have been. */
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
    // Not a ReplaySubject, which moves all that it remembers at each event.
    const replayed$ = new Observable<TroupeEvent>((subscriber) => {
      for (const event of this.#recent.items()) subscriber.next(event);
      return this.#subject.subscribe(subscriber);
    });
    this.events$ = new GuardedObservable(replayed$, (error) =>
      this.#failed("a subscriber to events$", error),
    );
  }

  /** Stamps an event and passes it on. After {@link close} it does nothing. */
  emit(body: TroupeEventBody): void {
    if (this.#closed) return;
    const event = this.#write(body);
    const isObserved = this.#subject.observed || this.listeners.isObserved;
    if (this.#queue.length === 0 && !isObserved) this.#recent.push(event);
    else this.#queue.push(event);
    if (this.#queue.length > 0) this.#draining ??= soon(() => this.#drain());
  }

  /**
   * Lets a sink write every event from now on; the hub closes it with itself.
   * @returns takes the sink out again, without closing it
   * @throws {TroupeError} `OPTION` for what has no `write` or no `close`
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

  /**
   * The events as an async iterator, beginning with the latest ones.
   * @throws {TroupeError} `OPTION`
   */
  events<Kind extends EventKind = EventKind>(options: EventStreamOptions<Kind> = {}): EventStream<Kind> {
    const unknown = unknownNames(options, { kinds: true, sample: true, buffer: true });
    if (unknown !== undefined)
      throw new TroupeError("OPTION", {
        where: "events",
        expected: unknown.expected,
        got: unknown.got,
        hint: unknown.hint,
      });
    const { buffer = 1024 } = options;
    if (!Number.isSafeInteger(buffer) || buffer < 1)
      throw optionError(
        "buffer",
        "a whole number ≥ 1",
        buffer,
        "it is how many events are held for a slow reader",
      );
    return new EventStream(this.events$.pipe(filter(selector(options))), buffer);
  }

  /**
   * Calls subscribers with all that was emitted, slow ones for at most a second: whoever waited for what was told has heard of it
   * then.
   */
  flush(): void {
    if (this.#closed) return;
    this.#draining?.cancel();
    this.#draining = undefined;
    const begin = performance.now();
    while (this.#queue.length > 0 && performance.now() - begin < flushMs)
      this.#deliver(this.#queue.shift() as TroupeEvent);
    this.#drain();
  }

  /** Delivers what is left, for at most a second to slow subscribers, completes `events$` and closes the sinks. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#draining?.cancel();
    const begin = performance.now();
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      this.#deliver(event);
      // The last one says how the run ended.
      if (performance.now() - begin > flushMs) this.#queue.keepNewest(1);
    }
    this.#subject.complete();
    // One after the other, the first one last: the console still says what became of the others.
    for (const sink of [...this.#sinks].reverse()) {
      this.#sinks.delete(sink);
      await sink.close();
    }
  }

  #write(body: TroupeEventBody): TroupeEvent {
    const event: TroupeEvent = { ...body, timeMs: this.#clock(), schemaVersion };
    for (const sink of this.#sinks) sink.write(event);
    return event;
  }

  /** Reports on a sink or a subscriber after the present event, so that the others get that event first. */
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
    // Also to standard error: the subscriber that failed may be a script's only one.
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
