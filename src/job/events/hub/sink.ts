import type { TroupeEvent, TroupeEventBody } from "../event.ts";

/** Receives a run's events. A sink never slows or stops a run, whatever it does. Errors name it by its class, or by `name`. */
export interface EventSink {
  /**
   * Called with every event, in order. If it returns a promise, it is not called again before that has settled. Errors,
   * thrown or by a rejected promise, are reported once; the sink still gets the next event.
   */
  write(event: TroupeEvent): unknown;
  /** Writes out buffered events; called after the last event. May return a promise. */
  close(): unknown;
  /** Called by the hub when the sink is added. With `tell` the sink reports on itself, for instance that its disk is full. */
  attach?(tell: (body: TroupeEventBody) => void): void;
  /** Whether it also receives the events of live models with names, whose steps are counted apart. Default: false. */
  readonly takesModels?: boolean;
  /** Its name in errors. Default: its class. */
  readonly name?: string;
  /** How long {@link close} is waited for, in milliseconds. Default: 10,000. */
  readonly closeDeadlineMs?: number;
}
