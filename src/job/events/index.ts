/** Events: their types, the hub that distributes them, and sinks that write them. */

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
export { EventHub, type EventHubOptions, type EventStreamOptions } from "./hub/event-hub.ts";
export { type EventListener, EventListeners } from "./hub/event-listeners.ts";
export { EventStream } from "./hub/event-stream.ts";
export { type EventSelection, ofKind, type Sampling } from "./hub/select-events.ts";
export type { EventSink } from "./hub/sink.ts";
export { stampMs } from "./hub/stamp.ts";
export type {
  ActorFailed,
  ActorRestarted,
  ActorStalled,
  ActorStarted,
  ActorStopped,
  AwaitedCall,
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
export type { HostEvent, HostFailed, HostJoined, HostRefused } from "./kinds/host.ts";
export type {
  EndReason,
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
  LossesUnweighed,
  MemoryMeasured,
  ParametersUnused,
  StepFinished,
  TextGenerated,
} from "./kinds/step.ts";
export type { ActivityFinished, MessageHandled } from "./kinds/trace.ts";
export { BoundedWriter, fileWriteMs, type TellTrouble } from "./sinks/bounded-writer.ts";
export { type ConsoleSinkOptions, type ConsoleStream, consoleSink } from "./sinks/console-sink.ts";
export { type JsonLinesOptions, jsonLinesSink, toJson } from "./sinks/json-lines-sink.ts";
export { RecordFile, type RecordFileOptions } from "./sinks/record-file.ts";
export { describeError } from "./words/describe-error.ts";
export { describeCollective, describeEvent, describeStall } from "./words/describe-event.ts";
