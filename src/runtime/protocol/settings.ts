/** Limits and habits that all actors of one system share. */
export interface MessagingSettings {
  /** Messages of a lane that one sender may have under way to one receiver. */
  readonly window: number;
  /** Data messages that may wait for credit before `tell` refuses. */
  readonly outboxCapacity: number;
  /** Telemetry messages kept while the receiver is slow; beyond it the oldest are dropped and counted. */
  readonly telemetryCapacity: number;
  /** How long a thread that blocks waits for credit. */
  readonly sendDeadlineMs: number;
  /** Freezes each message when it is sent, so that changing it afterwards throws. */
  readonly freezeMessages: boolean;
  /** The most that one packet between processes may take, in bytes. */
  readonly maxFrameBytes: number;
  /** Of the messages that the system sends outside any trace, each so-many-th begins one; 1 traces all, 0 none. */
  readonly traceEvery: number;
}

/** What holds unless the system is told otherwise. */
export const defaultMessagingSettings: MessagingSettings = {
  window: 1024,
  outboxCapacity: 65_536,
  telemetryCapacity: 1024,
  sendDeadlineMs: 60_000,
  freezeMessages: false,
  maxFrameBytes: 1 << 26,
  traceEvery: 0,
};

/** How long loading and starting an actor may take unless said otherwise. */
export const defaultStartDeadlineMs = 60_000;

/** How long a thread that is ended by force may take to end. */
export const terminateGraceMs = 5_000;

/** How long an actor may show no progress unless said otherwise. */
export const defaultStallAfterMs = 30_000;

/** How long an actor may take to stop unless said otherwise. */
export const defaultStopDeadlineMs = 5_000;
