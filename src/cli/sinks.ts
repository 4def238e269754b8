import { fstatSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { CommandOptions } from "../config/index.ts";
import { eventFileName } from "../dashboard/index.ts";
import { TroupeError } from "../errors.ts";
import {
  closeDescriptor,
  consoleSink,
  type EventSink,
  fileWriteMs,
  jsonLinesSink,
  makeFolder,
  ofKind,
  type TroupeEvent,
} from "../events/index.ts";
import { chromeTraceSink, openTelemetrySink, prometheusSink, tensorBoardSink } from "../sinks/index.ts";

/**
 * Makes the sinks that were asked for, by options or, OpenTelemetry's, by the environment.
 * @param folder - of the run
 * @throws {TroupeError} `SINK` for what cannot be listened on or written
 */
export async function sinksOf(
  { json, pino, events, tensorboard, prometheus, traceFile }: CommandOptions["output"],
  folder: string | undefined,
): Promise<EventSink[]> {
  const sinks = [
    json || pino ? jsonLinesSink(STANDARD_OUTPUT, { fields: pino ? "pino" : "plain" }) : consoleSink(),
  ];
  // A run whose checkpoints go elsewhere than to a folder keeps its events only where it is told.
  const kept = events === true ? folder && !folder.includes("://") && join(folder, eventFileName) : events;
  if (kept) sinks.push(eventFile(kept, traceFile !== undefined));
  if (tensorboard !== undefined) {
    sinks.push(writing("--tensorboard", tensorboard, () => tensorBoardSink(tensorboard)));
  }
  if (traceFile !== undefined)
    sinks.push(writing("--trace-file", traceFile, () => chromeTraceSink(traceFile)));
  if (prometheus !== false) {
    const port = prometheus === true ? undefined : prometheus.port;
    const served = await prometheusSink(port === undefined ? {} : { port });
    process.stderr.write(`metrics at ${served.url}\n`);
    sinks.push(served);
  }
  const telemetry = await openTelemetrySink();
  if (telemetry !== undefined) sinks.push(telemetry);
  return sinks;
}

/** What the file system says of a path that was typed, as a sentence. */
function writing(flag: string, path: string, make: () => EventSink): EventSink {
  try {
    return make();
  } catch (cause) {
    const { message } = cause as Error;
    throw new TroupeError(
      "SINK",
      { where: "sinks", expected: `${flag} to be where events can be written`, got: path, hint: message },
      {
        fields: { path },
        cause,
      },
    );
  }
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
      makeFolder(dirname(path));
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
