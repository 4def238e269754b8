import type { ErrorReport } from "../error-report.ts";

/** What did not reach who should have had it: a message, or an event. */
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
  /** How many, all alike. */
  readonly count: number;
}

/**
 * A sink, a listener or a subscriber threw, or its promise was rejected or has not settled. Reported once for each, which goes on
 * receiving events. A sink that failed again, or lost events, is reported once more when it is closed.
 */
export interface SubscriberFailed {
  readonly kind: "subscriber.failed";
  /** Its name: "write(event) of sink Tracker", "a listener to step.finished". */
  readonly subscriber: string;
  /** Its first failure. */
  readonly error: ErrorReport;
  /** The number of its calls that failed; when a sink is closed. */
  readonly numFailed?: number;
  /** The number of events that it did not get, because more waited than are held; when a sink is closed. */
  readonly numLost?: number;
}

/** A reader of events was slower than they came, and the oldest were dropped. */
export interface EventsDropped {
  readonly kind: "events.dropped";
  /** The actor that told more than was taken, where they were lost on their way from it. */
  readonly actor?: string | undefined;
  /** Events dropped since the last time this was told. */
  readonly numDropped: number;
}

/**
 * An output (a file, a pipe, a collector) takes nothing: training goes on, what comes is held, up to a bound, and written
 * when it can be. Told when that begins, and again at the end of a run in which it is not over.
 */
export interface OutputFailed {
  readonly kind: "output.failed";
  /** Its path, or what it is. */
  readonly output: string;
  readonly error: ErrorReport;
  /** Told at the end: how many entries it lacks for good since it failed. */
  readonly numLost?: number;
}

/** An output takes what comes again. */
export interface OutputResumed {
  readonly kind: "output.resumed";
  readonly output: string;
  /** Entries that it lacks for good, because more came than is held. */
  readonly numLost: number;
}
