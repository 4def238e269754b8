import type { ErrorReport } from "../error-report.ts";

/** What did not reach who should have had it: a message, or an event. */
export type DeliveryEvent = MessageUndelivered | SubscriberFailed | EventsDropped;

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

/** A subscriber to events threw; told once for each subscriber, which goes on receiving. */
export interface SubscriberFailed {
  readonly kind: "subscriber.failed";
  readonly error: ErrorReport;
}

/** A reader of events was slower than they came, and the oldest were dropped. */
export interface EventsDropped {
  readonly kind: "events.dropped";
  /** The actor that told more than was taken, where they were lost on their way from it. */
  readonly actor?: string | undefined;
  /** Events dropped since the last time this was told. */
  readonly numDropped: number;
}
