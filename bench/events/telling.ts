import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { EventSink, Runtime, RuntimeOptions } from "troupe";
import {
  chromeTraceSink,
  consoleSink,
  jsonLinesSink,
  openTelemetrySink,
  prometheusSink,
  tensorBoardSink,
  wandbSink,
} from "troupe/events";

/** One way to tell. */
export interface Telling {
  readonly name: string;
  options(folder: string): Promise<RuntimeOptions>;
  /** Looks at a run that is about to begin. @returns ends that */
  look?(runtime: Runtime): Promise<() => void>;
}

const silent: RuntimeOptions = { memory: { everySteps: Number.POSITIVE_INFINITY } };

/** The run without subscribers, with which the others are compared. */
export const nobody: Telling = { name: "no subscriber", options: async () => silent };

/** Every sink there is, but for the trace. */
export const everySink: Telling = {
  name: "every sink",
  options: async (folder) => ({ sinks: await allSinks(folder) }),
};

/** The ways to tell, in the order in which they are shown. */
export const tellings: readonly Telling[] = [
  nobody,
  everySink,
  { name: "dashboard, a page looks", options: async () => ({ dashboard: { port: 0 } }), look: openPage },
  { name: "1 step of 100 traced", options: async () => ({ ...silent, traceEvery: 100 }) },
  {
    name: "traced, to a file",
    options: async (folder) => ({
      ...silent,
      trace: true,
      sinks: [chromeTraceSink(join(folder, "trace.json"))],
    }),
  },
];

async function allSinks(folder: string): Promise<EventSink[]> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  return [
    consoleSink({ stream: { isTTY: true, columns: 120, write: () => true } }),
    jsonLinesSink(nowhere),
    tensorBoardSink(join(folder, "tensorboard")),
    wandbSink({ dir: join(folder, "wandb") }),
    await prometheusSink({ port: 0 }),
    await openTelemetry(),
  ];
}

/** With a collector that takes everything. It is sent what there is every five seconds, and at the end. */
async function openTelemetry(): Promise<EventSink> {
  const collector = createServer((request, response) => {
    request.resume().on("end", () => response.setHeader("content-type", "application/json").end("{}"));
  });
  await once(collector.listen(0, "127.0.0.1"), "listening");
  collector.unref();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  return (await openTelemetrySink()) as EventSink;
}

async function openPage({ dashboardUrl }: Runtime): Promise<() => void> {
  const page = fork(fileURLToPath(new URL("./page.ts", import.meta.url)), [dashboardUrl ?? ""]);
  await once(page, "message");
  return () => page.kill();
}
