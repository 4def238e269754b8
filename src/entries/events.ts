/** `troupe/events`: what a run reports, and the sinks that write it down. */

import "../errors/node-version.ts";

export {
  type ConsoleSinkOptions,
  type ConsoleStream,
  consoleSink,
  type ErrorReport,
  type EventKind,
  type EventOf,
  type EventSelection,
  type EventSink,
  type EventStream,
  type EventStreamOptions,
  type JsonLinesOptions,
  jsonLinesSink,
  ofKind,
  type Sampling,
  type SourceFrame,
  schemaVersion,
  type TroupeEvent,
} from "../job/events/index.ts";
export {
  chromeTraceSink,
  type MlflowOptions,
  mlflowSink,
  type OpenTelemetryOptions,
  openTelemetrySink,
  type PrometheusOptions,
  type PrometheusSink,
  prometheusSink,
  tensorBoardSink,
  type WandbOptions,
  wandbSink,
} from "../tools/sinks/index.ts";
