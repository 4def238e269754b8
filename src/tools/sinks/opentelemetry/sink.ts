import type { Gauge, Meter, Span, Tracer } from "@opentelemetry/api";
import {
  type ErrorReport,
  type EventKind,
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

/** The fields of events that are attributes of spans, and of notes in the run's span. */
const attributes: { readonly [Kind in EventKind]?: readonly string[] } = {
  "run.started": ["job", "numRanks", "zero", "precision", "seed", "numParameters", "numTrainable", "steps"],
  "step.finished": ["step", "lossNats", "numSamples", "numTokens", "exposedMs"],
  "evaluation.finished": ["split", "step", "lossNats"],
  "checkpoint.saved": ["step", "path", "sizeBytes"],
  "actor.failed": ["actor"],
  "actor.restarted": ["actor"],
  "anomaly.detected": ["anomaly", "step"],
};

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
        this.#sinceMs = event.timeMs;
        this.#run = this.#tracer.startSpan("run", {
          startTime: event.timeMs,
          root: true,
          attributes: attributesOf(event),
        });
        break;
      case "step.finished":
        this.#span(event, "step", event.durationMs);
        this.#sinceMs = event.timeMs;
        break;
      case "evaluation.finished":
        this.#span(event, "evaluation", event.timeMs - this.#sinceMs);
        this.#sinceMs = event.timeMs;
        break;
      case "checkpoint.saved":
        this.#span(event, "save", event.durationMs);
        break;
      case "actor.failed":
        this.#note(event, event.cause);
        break;
      case "checkpoint.failed":
        this.#note(event, event.error);
        break;
      case "actor.restarted":
      case "anomaly.detected":
        this.#note(event);
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

  #span(event: TroupeEvent, name: string, durationMs: number): void {
    if (this.#run === undefined) return;
    const { timeMs } = event;
    const { ROOT_CONTEXT, trace } = this.#api;
    const startTime = timeMs - durationMs;
    const within = trace.setSpan(ROOT_CONTEXT, this.#run);
    this.#deliveries.begun();
    this.#tracer.startSpan(name, { startTime, attributes: attributesOf(event) }, within).end(timeMs);
  }

  #note(event: TroupeEvent, error?: ErrorReport): void {
    const failed = error && { "exception.message": error.message };
    this.#run?.addEvent(event.kind, { ...attributesOf(event), ...failed }, event.timeMs);
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

/** An event's attributes, by the names of its fields: `troupe.loss_nats` for `lossNats`, `troupe.ranks` for `numRanks`. */
function attributesOf(event: TroupeEvent): Record<string, string | number> {
  const values = event as unknown as Readonly<Record<string, string | number | undefined>>;
  const named = (attributes[event.kind] ?? []).flatMap((field): [string, string | number][] => {
    const plain = field === "numTrainable" ? "trainableParameters" : field.replace(/^num/, "");
    const words = plain.match(/[A-Z]?[a-z]+/g) ?? [];
    const value = values[field];
    return value === undefined ? [] : [[`troupe.${words.join("_").toLowerCase()}`, value]];
  });
  return Object.fromEntries(named);
}
