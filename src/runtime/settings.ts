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
}

/** What holds unless the system is told otherwise. */
export const defaultMessagingSettings: MessagingSettings = {
  window: 1024,
  outboxCapacity: 65_536,
  telemetryCapacity: 1024,
  sendDeadlineMs: 60_000,
  freezeMessages: false,
};
