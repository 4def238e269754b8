import type { Gauge, Meter, Span, Tracer } from "@opentelemetry/api";
import {
  type EventOf,
  type EventSink,
  stampMs,
  type TellTrouble,
  type TroupeEvent,
} from "../../../job/events/index.ts";
import { type Point, pointsOf } from "../curves.ts";
import { Deliveries } from "./deliveries.ts";
import { loadPackages, type Packages } from "./packages.ts";

/** Sources of an OpenTelemetry sink; for tests. */
export interface OpenTelemetryOptions {
  /** Environment variables. Default: the process's, which the exporters read too. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Imports a package. */
  readonly load?: (name: string) => Promise<unknown>;
}

const endpointVariables = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
];

/** Time for a collector to take the last data. */
const closeMs = 5000;

/**
 * Sends a run to an OpenTelemetry collector by OTLP over HTTP: a span for the run, which contains spans for its steps, evaluations
 * and saves, and metrics. The environment configures it by OpenTelemetry's own rules
 * (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`, …). A collector that is slow or gone
 * costs spans, never time; the number of lost spans is reported.
 * @returns undefined if the environment names no endpoint, or `OTEL_SDK_DISABLED` is true
 * @throws {TroupeError} `SINK` if OpenTelemetry's packages are not installed
 */
export async function openTelemetrySink(options: OpenTelemetryOptions = {}): Promise<EventSink | undefined> {
  const { environment = process.env, load = (name) => import(name) } = options;
  if (environment.OTEL_SDK_DISABLED?.toLowerCase() === "true") return undefined;
  const endpoint = endpointVariables.map((name) => environment[name]).find(Boolean);
  if (endpoint === undefined) return undefined;
  return new OpenTelemetrySink(endpoint, await loadPackages(load));
}

class OpenTelemetrySink implements EventSink {
  readonly #api: Packages["api"];
  readonly #tracer: Tracer;
  readonly #meter: Meter;
  readonly #gauges = new Map<string, Gauge>();
  readonly #deliveries: Deliveries;
  readonly #shutDown: () => Promise<unknown>;
  #run: Span | undefined;
  /** Start of the interval that the next evaluation ends. */
  #sinceMs = 0;

  constructor(endpoint: string, { api, resources, traces, traceExport, metrics, metricExport }: Packages) {
    this.#deliveries = new Deliveries(`the collector at ${endpoint}`);
    const { detectResources, envDetector, resourceFromAttributes } = resources;
    const resource = resourceFromAttributes({
      "service.name": process.env.OTEL_SERVICE_NAME ?? "troupe",
    }).merge(detectResources({ detectors: [envDetector] }));
    const spans = new traces.BatchSpanProcessor({
      exporter: this.#deliveries.counting(new traceExport.OTLPTraceExporter()),
    });
    const traced = new traces.TracerProvider({ resource, spanProcessors: [spans] });
    const reader = new metrics.PeriodicExportingMetricReader({
      exporter: new metricExport.OTLPMetricExporter(),
    });
    const measured = new metrics.MeterProvider({ resource, readers: [reader] });
    this.#api = api;
    this.#tracer = traced.getTracer("troupe");
    this.#meter = measured.getMeter("troupe");
    this.#shutDown = () => Promise.allSettled([traced.shutdown(), measured.shutdown()]);
  }

  attach(tell: TellTrouble): void {
    this.#deliveries.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    for (const point of pointsOf(event)) this.#record(point);
    switch (event.kind) {
      case "run.started":
        this.#begin(event);
        break;
      case "step.finished":
        this.#span(event, "step", event.durationMs, {
          "troupe.step": event.step,
          "troupe.loss_nats": event.lossNats,
          "troupe.samples": event.numSamples,
          ...(event.numTokens === undefined ? {} : { "troupe.tokens": event.numTokens }),
          "troupe.exposed_ms": event.exposedMs,
        });
        this.#sinceMs = event.timeMs;
        break;
      case "evaluation.finished":
        this.#span(event, "evaluation", event.timeMs - this.#sinceMs, {
          "troupe.split": event.split,
          "troupe.step": event.step,
          "troupe.loss_nats": event.lossNats,
        });
        this.#sinceMs = event.timeMs;
        break;
      case "checkpoint.saved":
        this.#span(event, "save", event.durationMs, {
          "troupe.step": event.step,
          "troupe.path": event.path,
          "troupe.size_bytes": event.sizeBytes,
        });
        break;
      case "actor.failed":
        this.#note(event, { "troupe.actor": event.actor, "exception.message": event.cause.message });
        break;
      case "actor.restarted":
        this.#note(event, { "troupe.actor": event.actor });
        break;
      case "checkpoint.failed":
        this.#note(event, { "exception.message": event.error.message });
        break;
      case "anomaly.detected":
        this.#note(event, { "troupe.anomaly": event.anomaly, "troupe.step": event.step });
        break;
      case "run.finished":
        this.#end(event.timeMs);
        break;
      case "run.failed":
        this.#run?.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: event.error.message });
        this.#end(event.timeMs);
        break;
    }
  }

  async close(): Promise<void> {
    this.#end(stampMs());
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeMs);
    });
    await Promise.race([this.#shutDown(), timeout]);
    clearTimeout(timer);
    this.#deliveries.end();
  }

  #begin({
    timeMs,
    job,
    numRanks,
    zero,
    precision,
    seed,
    numParameters,
    numTrainable,
    steps,
  }: EventOf<"run.started">): void {
    this.#sinceMs = timeMs;
    this.#run = this.#tracer.startSpan("run", {
      startTime: timeMs,
      root: true,
      attributes: {
        "troupe.job": job,
        "troupe.ranks": numRanks,
        "troupe.zero": zero,
        "troupe.precision": precision,
        "troupe.seed": seed,
        "troupe.parameters": numParameters,
        "troupe.trainable_parameters": numTrainable,
        "troupe.steps": steps,
      },
    });
  }

  #span(
    { timeMs }: TroupeEvent,
    name: string,
    durationMs: number,
    attributes: Record<string, string | number>,
  ): void {
    if (this.#run === undefined) return;
    const { ROOT_CONTEXT, trace } = this.#api;
    const startTime = timeMs - durationMs;
    const within = trace.setSpan(ROOT_CONTEXT, this.#run);
    this.#deliveries.begun();
    this.#tracer.startSpan(name, { startTime, attributes }, within).end(timeMs);
  }

  #note({ kind, timeMs }: TroupeEvent, attributes: Record<string, string | number>): void {
    this.#run?.addEvent(kind, attributes, timeMs);
  }

  #end(timeMs: number): void {
    if (this.#run === undefined) return;
    this.#deliveries.begun();
    this.#run.end(timeMs);
    this.#run = undefined;
  }

  #record({ group, name, rank, value }: Point): void {
    const full = `troupe.${group}.${name}`;
    let gauge = this.#gauges.get(full);
    if (gauge === undefined) {
      gauge = this.#meter.createGauge(full);
      this.#gauges.set(full, gauge);
    }
    if (Number.isFinite(value)) gauge.record(value, rank === undefined ? {} : { rank });
  }
}
