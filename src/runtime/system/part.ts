import type { Failure } from "../protocol/failure.ts";
import type { RuntimeEvent } from "../protocol/runtime-event.ts";
import { unhandled } from "./launch-errors.ts";

/** Listeners of a {@link Part}. */
export interface PartListeners {
  readonly onEvent?: ((event: RuntimeEvent) => void) | undefined;
  readonly onUnhandled?: ((error: Error) => void) | undefined;
}

/** A part of a system: the actors that were started through it, and those that they own, report to it and end with it. */
export class Part {
  /** Names of the processes that its actors have lived in. */
  readonly processes = new Set<string>();
  /** Names of its actors that have had a warm standby, with the names of their processes. */
  readonly standbys = new Map<string, string>();
  readonly #listeners: PartListeners;
  #refusesStarts = false;

  constructor(listeners: PartListeners) {
    this.#listeners = listeners;
  }

  /** Whether it starts no more actors. */
  get refusesStarts(): boolean {
    return this.#refusesStarts;
  }

  /** Refuses all further starts, because it is about to end. */
  refuseStarts(): void {
    this.#refusesStarts = true;
  }

  /** Passes an event to the listener. Errors of the listener become process warnings. */
  hear(event: RuntimeEvent): void {
    try {
      this.#listeners.onEvent?.(event);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /** Reports an unhandled failure; without `onUnhandled` it ends the process. */
  raise(failure: Failure, actor: string): void {
    const error = unhandled(failure, actor);
    if (this.#listeners.onUnhandled !== undefined) this.#listeners.onUnhandled(error);
    else
      queueMicrotask(() => {
        throw error;
      });
  }
}
