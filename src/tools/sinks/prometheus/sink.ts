import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { TroupeError } from "../../../errors/index.ts";
import type { EventSink, TroupeEvent } from "../../../job/events/index.ts";
import { Callers, callerLimits, Gate, inUrl, makeToken } from "../../../runtime/access/index.ts";
import { RunMetrics } from "./metrics.ts";

/** Where metrics are served. */
export interface PrometheusOptions {
  /** 0 takes any free port. Default: 9464. */
  readonly port?: number;
  /** An address of this machine. Default: "127.0.0.1". */
  readonly host?: string;
}

/** A sink that is a small HTTP server. */
export interface PrometheusSink extends EventSink {
  /** The address to scrape, `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  /** Resolves once its port is free. */
  close(): Promise<void>;
}

/** The one that exporters of OpenTelemetry's take. */
const DEFAULT_PORT = 9464;
const REQUEST_TIMEOUT_MS = 10_000;
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Serves the latest figures of a run to Prometheus at `/metrics`, by default on loopback. Only GET and HEAD under the machine's own
 * names are answered. Anyone who can reach the address can read the figures. At most 64 connections stay open; one more
 * replaces the oldest.
 * @throws {TroupeError} `SINK` if the port cannot be listened on
 */
export async function prometheusSink(options: PrometheusOptions = {}): Promise<PrometheusSink> {
  const { port = DEFAULT_PORT, host = "127.0.0.1" } = options;
  const metrics = new RunMetrics();
  // Nobody is asked for a token, which scrapers rarely have; the gate still wants one.
  const gate = new Gate({ host, token: makeToken() });
  const { createServer } = await import("node:http");
  const limits = { ...callerLimits, requestTimeout: REQUEST_TIMEOUT_MS };
  const server = createServer(limits, (request, response) => answer(request, response, gate, metrics));
  // No caller is ever admitted, so the bound holds for all: there are few scrapers.
  new Callers(server);
  await listen(server, port, host);
  // A run that is over ends, whoever still looks.
  server.unref();
  const { port: listened } = server.address() as AddressInfo;
  return {
    url: `http://${inUrl(host)}:${listened}/metrics`,
    write: (event: TroupeEvent) => metrics.take(event),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(request: IncomingMessage, response: ServerResponse, gate: Gate, metrics: RunMetrics): void {
  const refusal = gate.refuse(request);
  if (refusal !== undefined) {
    response
      .writeHead(refusal.status, { "content-type": "text/plain", allow: "GET, HEAD" })
      .end(`${refusal.reason}\n`);
    return;
  }
  const [path] = (request.url ?? "").split("?");
  if (path !== "/metrics") {
    response.writeHead(404, { "content-type": "text/plain" }).end("metrics are at /metrics\n");
    return;
  }
  const text = metrics.text();
  const headers = {
    "content-type": CONTENT_TYPE,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  response.writeHead(200, headers).end(request.method === "HEAD" ? undefined : text);
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      reject(
        new TroupeError(
          "SINK",
          {
            where: "prometheus",
            expected: `a free port at ${host}:${port}`,
            got: cause.code ?? cause.message,
            hint: "choose another, or 0 for any",
          },
          { fields: { host, port }, cause },
        ),
      );
    });
    server.listen(port, host, () => resolve());
  });
}
