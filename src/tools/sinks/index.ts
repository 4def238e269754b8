/** Sinks that write events for other programs: TensorBoard, Prometheus, OpenTelemetry, trace viewers. */

export { type MlflowOptions, mlflowSink } from "./mlflow/sink.ts";
export { type OpenTelemetryOptions, openTelemetrySink } from "./opentelemetry/sink.ts";
export { type PrometheusOptions, type PrometheusSink, prometheusSink } from "./prometheus/sink.ts";
export { tensorBoardSink } from "./tensorboard/sink.ts";
export { chromeTraceSink } from "./trace/sink.ts";
export { type Lane, laneName, processName, slice, type TraceEvent, traceText } from "./trace/trace-event.ts";
export { type WandbOptions, wandbSink } from "./wandb/sink.ts";
