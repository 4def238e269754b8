import { EventEmitter } from "eventemitter3";
import { describeValue, TroupeError } from "../../../errors/index.ts";
import type { EventKind, EventOf, TroupeEvent } from "../event.ts";
import { checkKinds } from "../event-kinds.ts";
import { callSubscriber } from "./call-subscriber.ts";

/** Called with every event of one kind; what it returns counts for nothing, but a promise that rejects is a failure of its. */
export type EventListener<Kind extends EventKind> = (event: EventOf<Kind>) => unknown;

type AnyListener = (event: TroupeEvent) => unknown;

/** Who listens to events of a kind. One that throws, or whose promise rejects, is reported once; all of them go on hearing. */
export class EventListeners {
  readonly #emitter = new EventEmitter<Record<EventKind, [TroupeEvent]>>();
  /** The listener that the emitter knows, by the one that was given. */
  readonly #guarded = new WeakMap<AnyListener, AnyListener>();
  readonly #onFailure: (error: unknown, kind: EventKind) => void;

  /** @param onFailure - receives the first error of each listener, and the kind of event that it was called with */
  constructor(onFailure: (error: unknown, kind: EventKind) => void) {
    this.#onFailure = onFailure;
  }

  /** Whether anybody listens. */
  get isObserved(): boolean {
    return this.#emitter.eventNames().length > 0;
  }

  /** @throws {TroupeError} `OPTION` for a name that no kind has, and for what is no function */
  on<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): void {
    checkKinds("on", [kind]);
    this.#emitter.on(kind, this.#guard(listener as AnyListener));
  }

  /** The first event that comes, and no other. @throws {TroupeError} as {@link on} */
  once<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): void {
    checkKinds("once", [kind]);
    this.#emitter.once(kind, this.#guard(listener as AnyListener));
  }

  /** Takes a listener back, however often it listens to that kind. */
  off<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): void {
    const guarded = this.#guarded.get(listener as AnyListener);
    // Without a listener, the emitter would take back all.
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
