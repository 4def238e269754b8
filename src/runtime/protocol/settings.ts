/** Settings of messaging that all actors of one system share. */
export interface MessagingSettings {
  /** Most messages of a lane that one sender may have under way to one receiver. */
  readonly window: number;
  /** Most data messages that may wait for credit before `tell` throws. */
  readonly outboxCapacity: number;
  /** Most telemetry messages kept while the receiver is slow; beyond that the oldest are dropped and counted. */
  readonly telemetryCapacity: number;
  /** How long a blocked thread waits for credit. */
  readonly sendDeadlineMs: number;
  /** Freezes each message when it is sent, so that changing it afterwards throws. */
  readonly freezeMessages: boolean;
  /** Largest packet between processes, in bytes. */
  readonly maxFrameBytes: number;
  /** Every n-th message that the system sends outside any trace starts a trace; 1 traces all, 0 none. */
  readonly traceEvery: number;
}

/** Defaults of {@link MessagingSettings}. */
export const defaultMessagingSettings: MessagingSettings = {
  window: 1024,
  outboxCapacity: 65_536,
  telemetryCapacity: 1024,
  sendDeadlineMs: 60_000,
  freezeMessages: false,
  maxFrameBytes: 1 << 26,
  traceEvery: 0,
};

/** Default deadline for loading and starting an actor, in ms. */
export const defaultStartDeadlineMs = 60_000;

/** How long a terminated thread may take to end, in ms. */
export const terminateGraceMs = 5_000;

/** Default time that an actor may show no progress, in ms. */
export const defaultStallAfterMs = 30_000;

/** Default deadline for stopping an actor, in ms. */
export const defaultStopDeadlineMs = 5_000;
