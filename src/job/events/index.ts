/** Events: their types, the hub that distributes them, and sinks that write them. */

export { composeReport, type ErrorReport, reportError, type SourceFrame } from "./error-report.ts";
export * from "./event.ts";
export { type Figure, figuresOf, fillIn, type Labels, METRICS_PORT } from "./figures.ts";
export { EventHub, type EventStreamOptions } from "./hub/event-hub.ts";
export type { EventListener } from "./hub/event-listeners.ts";
export { EventStream } from "./hub/event-stream.ts";
export { type EventSelection, ofKind, type Sampling } from "./hub/select-events.ts";
export type { EventSink } from "./hub/sink.ts";
export { stampMs } from "./hub/stamp.ts";
export type { AwaitedCall, ReachedCollective } from "./kinds/actor.ts";
export type { OutputFailed } from "./kinds/delivery.ts";
export type { HostEvent, HostJoined } from "./kinds/host.ts";
export type { EndReason, RunChange, RunHost } from "./kinds/run.ts";
export type { RolloutsJudged } from "./kinds/step.ts";
export { BoundedWriter, fileWriteMs, type TellTrouble } from "./sinks/bounded-writer.ts";
export { type ConsoleSinkOptions, type ConsoleStream, consoleSink } from "./sinks/console-sink.ts";
export { type JsonLinesOptions, jsonLinesSink, toJson } from "./sinks/json-lines-sink.ts";
export { RecordFile } from "./sinks/record-file.ts";
export { describeError } from "./words/describe-error.ts";
export { describeCollective, describeEvent, describeStall } from "./words/describe-event.ts";
export { formatBytes } from "./words/format.ts";
