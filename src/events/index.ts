/** What happened: the union of events, where they come together, and where they are written. */
export { BoundedWriter, fileWriteMs, type TellTrouble } from "./bounded-writer.ts";
export { type ConsoleSinkOptions, type ConsoleStream, consoleSink } from "./console-sink.ts";
export { describeError } from "./describe-error.ts";
export { describeCollective, describeEvent, describeStall } from "./describe-event.ts";
export {
  composeReport,
  type ErrorReport,
  type ReportedError,
  reportError,
  type SourceFrame,
} from "./error-report.ts";
export {
  type EventKind,
  type EventOf,
  type EventStamp,
  schemaVersion,
  type TroupeEvent,
  type TroupeEventBody,
} from "./event.ts";
export { EventHub, type EventHubOptions, type EventSink, type EventStreamOptions } from "./event-hub.ts";
export { type EventListener, EventListeners } from "./event-listeners.ts";

export { EventStream } from "./event-stream.ts";
export { type JsonLinesOptions, jsonLinesSink, toJson } from "./json-lines-sink.ts";
export type {
  ActorFailed,
  ActorRestarted,
  ActorStalled,
  ActorStarted,
  ActorStopped,
  ReachedCollective,
} from "./kinds/actor.ts";
export type {
  CheckpointCopied,
  CheckpointFailed,
  CheckpointProgressed,
  CheckpointRejected,
  CheckpointSaved,
  CheckpointSkipped,
  CheckpointStarted,
} from "./kinds/checkpoint.ts";
export type {
  EventsDropped,
  MessageUndelivered,
  OutputFailed,
  OutputResumed,
  SubscriberFailed,
} from "./kinds/delivery.ts";
export type { HostEvent, HostFailed, HostJoined } from "./kinds/host.ts";
export type {
  RunChange,
  RunDelayed,
  RunFailed,
  RunFinished,
  RunHost,
  RunRestored,
  RunResumed,
  RunStarted,
} from "./kinds/run.ts";
export type {
  AnomalyDetected,
  EvaluationFinished,
  HistogramMeasured,
  MemoryMeasured,
  StepFinished,
  TextGenerated,
} from "./kinds/step.ts";
export type { ActivityFinished, MessageHandled } from "./kinds/trace.ts";
export { RecordFile, type RecordFileOptions } from "./record-file.ts";
export { type EventSelection, ofKind, type Sampling } from "./select-events.ts";
export { stampMs } from "./stamp.ts";
