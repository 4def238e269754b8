import type { ErrorReport } from "../error-report.ts";

/** Events about messages or events that did not reach their receiver. */
export type DeliveryEvent =
  | MessageUndelivered
  | SubscriberFailed
  | EventsDropped
  | OutputFailed
  | OutputResumed;

/** Messages could not be delivered. */
export interface MessageUndelivered {
  readonly kind: "message.undelivered";
  readonly reason: string;
  readonly messageKind: string;
  readonly from: string;
  readonly to: string;
  /** Number of messages, all alike. */
  readonly count: number;
}

/**
 * A sink, a listener or a subscriber threw an error, or its promise was rejected or has not settled. Reported once for each,
 * which keeps receiving events. A sink that failed again, or lost events, is reported once more when it is closed.
 */
export interface SubscriberFailed {
  readonly kind: "subscriber.failed";
  /** Its name: "write(event) of sink Tracker", "a listener to step.finished". */
  readonly subscriber: string;
  /** Its first error. */
  readonly error: ErrorReport;
  /** Number of its calls that failed; set when a sink is closed. */
  readonly numFailed?: number;
  /** Number of events that it did not get because too many waited; set when a sink is closed. */
  readonly numLost?: number;
}

/** A reader of events was too slow, and the oldest events were dropped. */
export interface EventsDropped {
  readonly kind: "events.dropped";
  /** The actor whose events were dropped, if they were lost on the way from it. */
  readonly actor?: string | undefined;
  /** Events dropped since the last report. */
  readonly numDropped: number;
}

/**
 * An output (a file, a pipe, a collector) accepts nothing: training goes on, and entries are held, up to a bound, until
 * it accepts them. Reported when that begins, and again at the end of the run if it lasts.
 */
export interface OutputFailed {
  readonly kind: "output.failed";
  /** Its path or description. */
  readonly output: string;
  readonly error: ErrorReport;
  /** At the end: number of entries lost for good since it failed. */
  readonly numLost?: number;
}

/** An output accepts entries again. */
export interface OutputResumed {
  readonly kind: "output.resumed";
  readonly output: string;
  /** Entries lost for good because too many were held. */
  readonly numLost: number;
}
