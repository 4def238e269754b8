/** What happened: the union of events, where they come together, and where they are written. */
export { BoundedWriter, closeDescriptor, fileWriteMs } from "./bounded-writer.ts";
export { type ConsoleSinkOptions, type ConsoleStream, consoleSink } from "./console-sink.ts";
export { describeCollective, describeEvent } from "./describe-event.ts";
export {
  type ActivityFinished,
  type ActorFailed,
  type ActorRestarted,
  type ActorStalled,
  type ActorStarted,
  type ActorStopped,
  type AnomalyDetected,
  type CheckpointCopied,
  type CheckpointFailed,
  type CheckpointProgressed,
  type CheckpointRejected,
  type CheckpointSaved,
  type CheckpointSkipped,
  type CheckpointStarted,
  type ErrorReport,
  type EvaluationFinished,
  type EventKind,
  type EventOf,
  type EventStamp,
  type EventsDropped,
  type HistogramMeasured,
  type MemoryMeasured,
  type MessageHandled,
  type MessageUndelivered,
  type ReachedCollective,
  type RunFailed,
  type RunFinished,
  type RunRestored,
  type RunStarted,
  reportError,
  type StepFinished,
  type SubscriberFailed,
  schemaVersion,
  type TextGenerated,
  type TroupeEvent,
  type TroupeEventBody,
} from "./event.ts";
export { EventHub, type EventHubOptions, type EventSink, type EventStreamOptions } from "./event-hub.ts";
export { EventStream } from "./event-stream.ts";
export { type JsonLinesOptions, jsonLinesSink, toJson } from "./json-lines-sink.ts";
export { type EventSelection, ofKind, type Sampling } from "./select-events.ts";
export { stampMs } from "./stamp.ts";
