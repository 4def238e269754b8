import { TroupeError } from "../../../errors/index.ts";
import { type EventSink, METRICS_PORT } from "../../../job/events/index.ts";
import { HttpServer, Refused, reply } from "../../../job/http.ts";
import { Gate, inUrl } from "../../../runtime/access/index.ts";
import { RunMetrics } from "./metrics.ts";

/** Address of the metrics. */
export interface PrometheusOptions {
  /** Port; 0: any free one. Default: that of `--prometheus`. */
  readonly port?: number;
  /** An address of this machine. Default: "127.0.0.1". */
  readonly host?: string;
}

/** A sink with its own HTTP server. */
export interface PrometheusSink extends EventSink {
  /** The address to scrape, `http://127.0.0.1:PORT/metrics`. */
  readonly url: string;
  /** Resolves once its port is free. */
  close(): Promise<void>;
}

const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Serves the latest figures of a run to Prometheus at `/metrics`, by default on loopback. Only GET and HEAD under the machine's own
 * names are answered. Anyone who can reach the address can read the figures. At most 64 connections stay open; one more
 * replaces the oldest.
 * @throws {TroupeError} `SINK` if the port cannot be listened on
 */
export async function prometheusSink(options: PrometheusOptions = {}): Promise<PrometheusSink> {
  const { port = METRICS_PORT, host = "127.0.0.1" } = options;
  const metrics = new RunMetrics();
  // Scrapers rarely have a token. None is ever admitted, so the bound on waiting callers holds for all.
  const server = await HttpServer.open({ gate: new Gate({ host }) });
  server.serve((call) => {
    if (call.path !== "/metrics") throw new Refused(404, "metrics are at /metrics");
    reply(call, CONTENT_TYPE, metrics.text());
  });
  const listened = await server.listen(host, port, (cause) => {
    const expected = `a free port at ${host}:${port}`;
    const got = cause.code ?? cause.message;
    const operands = { where: "prometheus", expected, got, hint: "choose another port, or 0 for any" };
    return new TroupeError("SINK", { ...operands, fields: { host, port }, cause });
  });
  return {
    url: `http://${inUrl(host)}:${listened}/metrics`,
    write: (event) => metrics.take(event),
    close: () => server.close(),
  };
}
