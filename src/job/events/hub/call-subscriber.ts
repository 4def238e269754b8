import type { Observer, Operator, Subscription } from "rxjs";
// Imported from their own files: rxjs's index loads 220 modules, a sixth of the time to start an actor's thread.
import { Observable } from "rxjs/internal/Observable";
import { Subscriber } from "rxjs/internal/Subscriber";
import { isThenable } from "../../../errors/index.ts";

/** Receives an error that a subscriber threw, or that its promise was rejected with. */
export type ReportFailure = (error: unknown) => void;

/**
 * Calls a subscriber's function. Its errors, thrown or by a rejected promise, go to `onFailure` and no further.
 * @returns a promise that resolves once the function's promise has settled; undefined where it returned none
 */
export function callSubscriber(body: () => unknown, onFailure: ReportFailure): Promise<void> | undefined {
  try {
    const result = body();
    if (!isThenable(result)) return undefined;
    // A promise of another library or realm is not an instance of this `Promise`.
    return Promise.resolve(result).then(() => {}, onFailure);
  } catch (error) {
    onFailure(error);
    return undefined;
  }
}

/**
 * An observable whose subscribers may throw. rxjs would throw their error again from a timer, which ends the process;
 * here the first error of each is reported, and all keep receiving events. Results of `pipe` are guarded too.
 */
export class GuardedObservable<T> extends Observable<T> {
  readonly #report: ReportFailure;

  constructor(source: Observable<T> | undefined, report: ReportFailure) {
    super(source && ((subscriber) => source.subscribe(subscriber)));
    this.#report = report;
  }

  // Operators build their result with `lift`: deprecated for callers, but rxjs 7's only hook for subclasses.
  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new GuardedObservable<R>(undefined, this.#report);
    (lifted as Observable<unknown>).source = this;
    (lifted as Observable<unknown>).operator = operator as Operator<unknown, unknown>;
    return lifted;
  }

  override subscribe(
    observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    // A subscriber of rxjs's own is an operator further down: the guard belongs at the end of the chain.
    if (observerOrNext instanceof Subscriber) return super.subscribe(observerOrNext);
    const observer =
      typeof observerOrNext === "object" && observerOrNext !== null
        ? observerOrNext
        : { next: observerOrNext ?? (() => {}), error: error ?? undefined, complete: complete ?? undefined };
    return super.subscribe(guard(observer as Partial<Observer<T>>, this.#report));
  }
}

function guard<T>(observer: Partial<Observer<T>>, report: ReportFailure): Observer<T> {
  let reported = false;
  const fail = (error: unknown) => {
    if (!reported) report(error);
    reported = true;
  };
  const call = (body: () => unknown) => void callSubscriber(body, fail);
  return {
    next: (value) => call(() => observer.next?.(value)),
    error: (error) => (observer.error === undefined ? fail(error) : call(() => observer.error?.(error))),
    complete: () => call(() => observer.complete?.()),
  };
}
