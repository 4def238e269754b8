import { TroupeError } from "../../../errors/index.ts";
import type { EndReason } from "../../../job/events/index.ts";
import type { StateName } from "../../../library/checkpoint/index.ts";
import { RankNotices } from "./rank-notices.ts";

/** A durable state. */
export interface SavedState {
  /** Number of updates made to it. */
  readonly step: number;
  /** Path of the checkpoint. */
  readonly path: string;
  readonly sizeBytes: number;
}

/** The outcome of a save; abandoned if its generation of the rank group ended before it was complete. */
export type SaveOutcome =
  | { readonly kind: "saved"; readonly state: SavedState }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "abandoned" };

/** A request for a durable state. */
export interface SaveRequest {
  readonly resolve: (state: SavedState) => void;
  readonly reject: (reason: unknown) => void;
}

/** The end of a run, in order, before its last planned step. */
export interface EarlyEnd {
  /** Steps made in all. */
  readonly step: number;
  readonly why: EndReason;
}

/** Requests to pause, resume, save and stop a run, read between two steps; they outlive a restart of the ranks. */
export class RunControl {
  readonly notices = new RankNotices();
  readonly #saves = new Set<SaveRequest>();
  readonly #pauses = new Set<PromiseWithResolvers<number>>();
  #changed = Promise.withResolvers<void>();
  #onChange = () => {};
  #isPaused = false;
  #isStopping = false;
  #isClosed = false;
  #end: EarlyEnd | undefined;
  /** States that ranks' code asked to save and that are not durable yet, by step. */
  readonly #wantedStates = new Map<number, StateName | undefined>();

  get isPaused(): boolean {
    return this.#isPaused && !this.#isStopping;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** The end of the run before its last planned step, as far as known. A restart of the ranks does not change it. */
  get end(): EarlyEnd | undefined {
    return this.#end;
  }

  /** Ends the run after `step` steps, unless it ends earlier already. */
  endAt(step: number, why: EndReason): void {
    if (this.#end === undefined || step < this.#end.step) this.#end = { step, why };
    this.#change();
  }

  /** Notes that a rank's code asked to save the state after `step` steps. A restart of the ranks does not change it. */
  wantState(step: number, named: StateName | undefined): void {
    this.#wantedStates.set(step, named ?? this.#wantedStates.get(step));
  }

  /** The request to save the state after `step` steps, with its name; undefined if there is none. */
  wantedState(step: number): { readonly named: StateName | undefined } | undefined {
    return this.#wantedStates.has(step) ? { named: this.#wantedStates.get(step) } : undefined;
  }

  /** Drops the request for a state when its save has ended, unless the save was cut off. */
  async stateSaved(step: number, save: Promise<SaveOutcome>): Promise<void> {
    if ((await save).kind !== "abandoned") this.#wantedStates.delete(step);
  }

  get openSaves(): readonly SaveRequest[] {
    return [...this.#saves];
  }

  /** Saves the state after the next granted step, or else the present one. @throws the error of the save; `RUN_OVER` */
  save(): Promise<SavedState> {
    if (this.#isClosed) return Promise.reject(over());
    const { promise, resolve, reject } = Promise.withResolvers<SavedState>();
    this.#saves.add({ resolve, reject });
    this.#change();
    return promise;
  }

  /** Grants no step until {@link resume}. @returns the steps made in all, once the granted ones are made @throws `RUN_OVER` */
  pause(): Promise<number> {
    if (this.#isClosed || this.#isStopping) return Promise.reject(over());
    this.#isPaused = true;
    const paused = Promise.withResolvers<number>();
    this.#pauses.add(paused);
    this.#change();
    return paused.promise;
  }

  /** Grants steps again. Does nothing if the run is not paused. */
  resume(): void {
    this.#isPaused = false;
    this.#change();
  }

  /** Ends the run after the granted steps, paused or not. */
  stop(): void {
    this.#isStopping = true;
    this.#change();
  }

  /** Has `onChange` called at each request, in the place of the one before. */
  listen(onChange: () => void): void {
    this.#onChange = onChange;
  }

  /** Resolves at the next request. */
  changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** All granted steps are made: `steps` in all. */
  held(steps: number): void {
    for (const { resolve } of this.#pauses) resolve(steps);
    this.#pauses.clear();
  }

  /** Answers save requests with the outcome of a save; an abandoned one is still to be made. */
  async answer(requests: readonly SaveRequest[], save: Promise<SaveOutcome>): Promise<void> {
    const outcome = await save;
    if (outcome.kind === "abandoned") return;
    for (const request of requests) {
      if (!this.#saves.delete(request)) continue;
      if (outcome.kind === "saved") request.resolve(outcome.state);
      else request.reject(outcome.error);
    }
  }

  /** Ends the run: rejects all requests, present and future. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of [...this.#saves, ...this.#pauses]) reject(over());
    this.#saves.clear();
    this.#pauses.clear();
    this.#change();
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    this.#onChange();
  }
}

/** The error of requests to a run that is over, or has not begun. */
export function over(): TroupeError {
  return new TroupeError("RUN_OVER", {
    where: "runtime",
    expected: "a run in progress",
    got: "none",
    hint: "ask between the call of `run` and its end",
  });
}
