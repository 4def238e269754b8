import { fstatSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { eventFileName } from "../dashboard/index.ts";
import {
  closeDescriptor,
  consoleSink,
  type EventSink,
  fileWriteMs,
  jsonLinesSink,
  ofKind,
  type TroupeEvent,
} from "../events/index.ts";
import { chromeTraceSink, openTelemetrySink, prometheusSink, tensorBoardSink } from "../sinks/index.ts";
import type { RuntimeOptions } from "../trainer/index.ts";
import { number } from "./flags.ts";

/** What was typed about where events go. */
export interface SinkFlags {
  readonly json: boolean;
  readonly pino: boolean;
  readonly events?: string | boolean;
  readonly tensorboard?: string;
  readonly prometheus?: number | true;
  readonly traceFile?: string;
  readonly traceEvery?: number;
  readonly histograms?: number;
}

/** Adds the flags that say where events go. */
export function addSinkFlags(command: Command): Command {
  return command
    .option("--json", "print events as JSON lines on standard output", false)
    .option("--pino", "the same with the fields of pino, for pino-pretty", false)
    .option("--events <file>", "keep events as JSON lines (default: events.jsonl beside the checkpoints)")
    .option("--no-events", "keep none")
    .option("--tensorboard <dir>", "write event files for TensorBoard into this folder")
    .option("--prometheus [port]", "serve metrics on loopback for Prometheus (default: 9464)", number)
    .option("--trace-file <file>", "write a trace of every actor and message for ui.perfetto.dev")
    .option("--trace-every <n>", "tell the messages of every nth step", number)
    .option("--histograms <n>", "tell histograms of weights and gradients every nth step", number);
}

/** @returns the options that the flags amount to: what is told, beside what always is */
export function telemetryOf({
  traceFile,
  traceEvery,
  histograms,
}: SinkFlags): Pick<RuntimeOptions, "trace" | "traceEvery" | "histograms"> {
  return {
    trace: traceFile !== undefined,
    ...(traceEvery === undefined ? {} : { traceEvery }),
    ...(histograms === undefined ? {} : { histograms: { everySteps: histograms } }),
  };
}

/**
 * Makes the sinks that were asked for, by flags or, OpenTelemetry's, by the environment.
 * @param folder - of the run
 * @throws {TroupeError} `SINK`, and what the file system says of files that cannot be written
 */
export async function sinksOf(flags: SinkFlags, folder: string | undefined): Promise<EventSink[]> {
  const { json, pino, tensorboard, prometheus, traceFile } = flags;
  const sinks = [
    json || pino ? jsonLinesSink(STANDARD_OUTPUT, { fields: pino ? "pino" : "plain" }) : consoleSink(),
  ];
  const { events = true } = flags;
  // A run whose checkpoints go elsewhere than to a folder keeps its events only where it is told.
  const kept = events === true ? folder && !folder.includes("://") && join(folder, eventFileName) : events;
  if (kept) sinks.push(eventFile(kept, traceFile !== undefined));
  if (tensorboard !== undefined) sinks.push(tensorBoardSink(tensorboard));
  if (traceFile !== undefined) sinks.push(chromeTraceSink(traceFile));
  if (prometheus !== undefined) {
    const served = await prometheusSink(prometheus === true ? {} : { port: prometheus });
    process.stderr.write(`metrics at ${served.url}\n`);
    sinks.push(served);
  }
  const telemetry = await openTelemetrySink();
  if (telemetry !== undefined) sinks.push(telemetry);
  return sinks;
}

const STANDARD_OUTPUT = 1;

/** What a trace is made of: a hundred times as much as all the rest. */
const isOfTrace = ofKind("activity.finished", "message.handled");

/**
 * A file of JSON lines that begins with the run, when its folder is known to be good, and has what was told before too. A
 * run that goes on appends.
 * @param hasTrace - whether the trace has a file of its own
 */
function eventFile(path: string, hasTrace: boolean): EventSink {
  const held: TroupeEvent[] = [];
  let file: { readonly sink: EventSink; readonly descriptor: number } | undefined;
  return {
    write(event) {
      if (hasTrace && isOfTrace(event)) return;
      if (file === undefined) held.push(event);
      else file.sink.write(event);
      if (event.kind !== "run.started" || file !== undefined) return;
      mkdirSync(dirname(path), { recursive: true });
      const descriptor = openSync(path, "a");
      // A killed run may have left half a line: what follows is not to be read as its other half.
      if (fstatSync(descriptor).size > 0) writeSync(descriptor, "\n");
      file = { sink: jsonLinesSink(descriptor, { everyMs: fileWriteMs }), descriptor };
      for (const before of held.splice(0)) file.sink.write(before);
    },
    async close() {
      if (file === undefined) return;
      await file.sink.close();
      await closeDescriptor(file.descriptor);
    },
  };
}
