import { EventEmitter } from "eventemitter3";
import { describeValue, TroupeError } from "../../../errors/index.ts";
import type { EventKind, EventOf, TroupeEvent } from "../event.ts";
import { checkKinds } from "../event-kinds.ts";
import { callSubscriber } from "./call-subscriber.ts";

/** Called with every event of one kind. Its result is ignored, except for a promise: a rejection counts as an error. */
export type EventListener<Kind extends EventKind> = (event: EventOf<Kind>) => unknown;

type AnyListener = (event: TroupeEvent) => unknown;

/** Listeners by kind of event. The first error of each, thrown or rejected, is reported; it keeps receiving events. */
export class EventListeners {
  readonly #emitter = new EventEmitter<Record<EventKind, [TroupeEvent]>>();
  /** The wrapped listener that the emitter has, by the original. */
  readonly #guarded = new WeakMap<AnyListener, AnyListener>();
  readonly #onFailure: (error: unknown, kind: EventKind) => void;

  /** @param onFailure - receives the first error of each listener, and the kind of event */
  constructor(onFailure: (error: unknown, kind: EventKind) => void) {
    this.#onFailure = onFailure;
  }

  /** Whether there are any listeners. */
  get isObserved(): boolean {
    return this.#emitter.eventNames().length > 0;
  }

  /** Adds a listener. @throws {TroupeError} `OPTION` for an unknown kind, or a listener that is not a function */
  on<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): void {
    checkKinds("on", [kind]);
    this.#emitter.on(kind, this.#guard(listener as AnyListener));
  }

  /** Adds a listener for the next such event only. @throws {TroupeError} as {@link on} */
  once<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): void {
    checkKinds("once", [kind]);
    this.#emitter.once(kind, this.#guard(listener as AnyListener));
  }

  /** Removes a listener, however often it was added for that kind. */
  off<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): void {
    const guarded = this.#guarded.get(listener as AnyListener);
    // Without a listener, the emitter would remove all.
    if (guarded !== undefined) this.#emitter.off(kind, guarded);
  }

  emit(event: TroupeEvent): void {
    this.#emitter.emit(event.kind, event);
  }

  #guard(listener: AnyListener): AnyListener {
    if (typeof listener !== "function")
      throw new TroupeError("OPTION", { where: "on", expected: "a listener", got: describeValue(listener) });
    const known = this.#guarded.get(listener);
    if (known !== undefined) return known;
    let isReported = false;
    const fail = (error: unknown, kind: EventKind) => {
      if (!isReported) this.#onFailure(error, kind);
      isReported = true;
    };
    const guarded = (event: TroupeEvent) => {
      void callSubscriber(
        () => listener(event),
        (error) => fail(error, event.kind),
      );
    };
    this.#guarded.set(listener, guarded);
    return guarded;
  }
}
