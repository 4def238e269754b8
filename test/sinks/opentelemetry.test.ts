import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openTelemetrySink } from "../../src/tools/sinks/index.ts";
import { stamped } from "../events/samples.ts";
import { patience } from "../fixtures/patience.ts";

/** A collector that keeps what it is sent, by path. */
async function openCollector(): Promise<{ readonly url: string; readonly received: Map<string, unknown[]> }> {
  const received = new Map<string, unknown[]>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const path = request.url ?? "";
      received.set(path, [...(received.get(path) ?? []), JSON.parse(Buffer.concat(chunks).toString())]);
      response.setHeader("content-type", "application/json").end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

function setEnvironment(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}

interface SpanSent {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly events: readonly { readonly name: string }[];
}

describe("the OpenTelemetry sink", () => {
  test("sends a run's spans and metrics to the collector that the environment names", async () => {
    const { url, received } = await openCollector();
    setEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_SERVICE_NAME: "my-training" });
    const sink = await openTelemetrySink();
    const startMs = 1_700_000_000_000;
    sink?.write({ ...stamped("run.started"), timeMs: startMs });
    for (const step of [1, 2]) {
      const reported = stamped("step.finished", { step, durationMs: 40, lossNats: 3 - step });
      sink?.write({ ...reported, timeMs: startMs + 50 * step });
    }
    sink?.write({ ...stamped("evaluation.finished"), timeMs: startMs + 120 });
    sink?.write({ ...stamped("checkpoint.saved", { durationMs: 30 }), timeMs: startMs + 140 });
    sink?.write({ ...stamped("memory.measured"), timeMs: startMs + 150 });
    sink?.write({ ...stamped("actor.restarted"), timeMs: startMs + 160 });
    sink?.write({ ...stamped("run.failed"), timeMs: startMs + 200 });
    await sink?.close();

    const traces = received.get("/v1/traces") as {
      resourceSpans: { resource: { attributes: unknown[] }; scopeSpans: { spans: SpanSent[] }[] }[];
    }[];
    expect(JSON.stringify(traces[0]?.resourceSpans[0]?.resource.attributes)).toContain("my-training");
    const spans = traces.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
    const times = ({ startTimeUnixNano, endTimeUnixNano }: SpanSent) =>
      [startTimeUnixNano, endTimeUnixNano].map((time) => Number(BigInt(time) / 1_000_000n) - startMs);
    expect(spans.map((span) => [span.name, ...times(span)])).toEqual([
      ["step", 10, 50],
      ["step", 60, 100],
      ["evaluation", 100, 120],
      ["save", 110, 140],
      ["run", 0, 200],
    ]);
    const run = spans.at(-1);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    for (const span of spans.slice(0, -1)) expect(span.parentSpanId).toBe(run?.spanId);
    expect(run?.status.code).toBe(2);
    expect(run?.events.map(({ name }) => name)).toEqual(["actor.restarted"]);

    const metrics = JSON.stringify(received.get("/v1/metrics"));
    expect(metrics).toContain('"troupe.loss.train"');
    expect(metrics).toMatch(
      /"name":"troupe\.memory\.optimizer_bytes".*?"key":"rank","value":\{"intValue":1\}/,
    );
  });

  test.each([
    ["refuses every connection", () => Promise.resolve()],
    ["takes what it is sent and never answers", () => new Promise<void>(() => {})],
  ])("the sink counts events lost to a collector that %s, and goes on", async (_what, answered) => {
    const server = createServer((request, response) => {
      request.resume();
      void answered().then(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    setEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_TIMEOUT: "200" });
    const sink = await openTelemetrySink();
    const reported: unknown[] = [];
    sink?.attach?.((body) => reported.push(body));
    sink?.write(stamped("run.started"));
    for (const step of [1, 2, 3]) sink?.write(stamped("step.finished", { step }));
    sink?.write(stamped("run.finished"));
    await sink?.close();
    const output = `the collector at ${url}`;
    expect(reported).toEqual([
      { kind: "output.failed", output, error: expect.anything() },
      { kind: "output.failed", output, error: expect.anything(), numLost: 4 },
    ]);
  });

  test("tells when a collector takes spans again, and how many it lacks", async () => {
    let status = 400;
    const server = createServer((request, response) => {
      request.resume().on("end", () => response.writeHead(status).end("{}"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    setEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    const sink = await openTelemetrySink();
    const reported: { kind: string }[] = [];
    const heard = (kind: string) =>
      vi.waitFor(() => expect(reported.map((each) => each.kind)).toContain(kind), patience);
    sink?.attach?.((body) => reported.push(body));
    sink?.write(stamped("run.started"));
    // So many are sent at once.
    for (let step = 1; step <= 512; step++) sink?.write(stamped("step.finished", { step }));
    await heard("output.failed");
    status = 200;
    for (let step = 513; step <= 1024; step++) sink?.write(stamped("step.finished", { step }));
    await heard("output.resumed");
    await sink?.close();
    expect(reported).toMatchObject([{ kind: "output.failed" }, { kind: "output.resumed", numLost: 512 }]);
  });

  test("is not there unless the environment names an endpoint", async () => {
    const load = () => Promise.reject(new Error("loaded"));
    expect(await openTelemetrySink({ environment: {}, load })).toBeUndefined();
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_SDK_DISABLED: "true" };
    expect(await openTelemetrySink({ environment, load })).toBeUndefined();
  });

  test("names the command that installs its packages where they are not there", async () => {
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
    const load = (name: string) => Promise.reject(new Error(`Cannot find package '${name}'`));
    await expect(openTelemetrySink({ environment, load })).rejects.toMatchObject({
      code: "SINK",
      message: expect.stringMatching(/Cannot find package .*\(npm install @opentelemetry\/api .*, or unset/),
    });
  });
});
