import { TroupeError } from "../../../errors/index.ts";

/** OpenTelemetry's packages, loaded on use. */
export interface Packages {
  readonly api: typeof import("@opentelemetry/api");
  readonly resources: typeof import("@opentelemetry/resources");
  readonly traces: typeof import("@opentelemetry/sdk-trace");
  readonly traceExport: typeof import("@opentelemetry/exporter-trace-otlp-http");
  readonly metrics: typeof import("@opentelemetry/sdk-metrics");
  readonly metricExport: typeof import("@opentelemetry/exporter-metrics-otlp-http");
}

const names = {
  api: "@opentelemetry/api",
  resources: "@opentelemetry/resources",
  traces: "@opentelemetry/sdk-trace",
  traceExport: "@opentelemetry/exporter-trace-otlp-http",
  metrics: "@opentelemetry/sdk-metrics",
  metricExport: "@opentelemetry/exporter-metrics-otlp-http",
} as const satisfies Record<keyof Packages, string>;

/**
 * Loads OpenTelemetry's packages, which runs without this sink do not need.
 * @param load - imports a package
 * @throws {TroupeError} `SINK` with the command that installs them
 */
export async function loadPackages(load: (name: string) => Promise<unknown>): Promise<Packages> {
  try {
    const entries = Object.entries(names).map(async ([key, name]) => [key, await load(name)] as const);
    return Object.fromEntries(await Promise.all(entries)) as unknown as Packages;
  } catch (cause) {
    throw new TroupeError("SINK", {
      where: "opentelemetry",
      expected: "its packages, since OTEL_EXPORTER_OTLP_ENDPOINT is set",
      got: (cause as Error).message,
      hint: `npm install ${Object.values(names).join(" ")}, or unset the variable`,
      cause,
    });
  }
}
