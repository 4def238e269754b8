import { join } from "node:path";
import { TroupeError } from "../../errors/index.ts";
import { eventFileName } from "../../job/dashboard/index.ts";
import {
  consoleSink,
  type EventSink,
  jsonLinesSink,
  ofKind,
  type TroupeEvent,
} from "../../job/events/index.ts";
import type { CommandOptions } from "../../job/options/index.ts";
import {
  chromeTraceSink,
  mlflowSink,
  openTelemetrySink,
  prometheusSink,
  tensorBoardSink,
  wandbSink,
} from "../sinks/index.ts";

/**
 * Makes the sinks that options, or OpenTelemetry's variables, ask for.
 * @param folder - of the run
 * @param debug - whether the console prints errors with all details
 * @throws {TroupeError} `SINK` for an address or file that cannot be used
 */
export async function sinksOf(
  {
    json,
    pino,
    events,
    tensorboard,
    mlflow,
    mlflowCheckpoints,
    wandb,
    prometheus,
    traceFile,
    logEverySteps,
  }: CommandOptions["output"],
  folder: string | undefined,
  debug: boolean,
): Promise<EventSink[]> {
  const sinks = [
    json || pino
      ? jsonLinesSink(STANDARD_OUTPUT, { fields: pino ? "pino" : "plain" })
      : consoleSink({ debug, failure: false, everySteps: logEverySteps }),
  ];
  const hasTrace = traceFile !== undefined;
  // A run without a local checkpoint folder keeps its events only where an option says so.
  const local = localOf(folder);
  if (events === true && local) {
    const path = join(local, eventFileName);
    sinks.push(heldBack(() => eventFile(jsonLinesSink(path, { mayWait: true }), hasTrace)));
  } else if (typeof events === "string")
    sinks.push(
      eventFile(
        writing("--events", events, () => jsonLinesSink(events)),
        hasTrace,
      ),
    );
  if (tensorboard !== undefined)
    sinks.push(writing("--tensorboard", tensorboard, () => tensorBoardSink(tensorboard)));
  if (mlflow !== undefined)
    sinks.push(mlflowSink({ url: mlflow, folder: local, checkpoints: mlflowCheckpoints }));
  if (wandb !== undefined)
    sinks.push(writing("--wandb", wandb, () => wandbSink({ dir: wandb, folder: local })));
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

/** A run's folder, unless it is in a store. */
function localOf(folder: string | undefined): string | undefined {
  return folder === undefined || folder.includes("://") ? undefined : folder;
}

/** Makes a sink, and explains a file system's error for a path that was given. */
function writing(flag: string, path: string, make: () => EventSink): EventSink {
  try {
    return make();
  } catch (cause) {
    const { message } = cause as Error;
    throw new TroupeError("SINK", {
      where: "sinks",
      expected: `${flag} to be where events can be written`,
      got: path,
      hint: message,
      fields: { path },
      cause,
    });
  }
}

const STANDARD_OUTPUT = 1;

/** The events of a trace: a hundred times as many as all others. */
const isOfTrace = ofKind("activity.finished", "message.handled");

/** @param hasTrace - whether the trace has a file of its own */
function eventFile(file: EventSink, hasTrace: boolean): EventSink {
  if (!hasTrace) return file;
  return {
    ...file,
    write(event) {
      if (!isOfTrace(event)) file.write(event);
    },
  };
}

/** A sink that is made when the run begins, since its folder is checked by then; it also receives earlier events. */
function heldBack(make: () => EventSink): EventSink {
  const held: TroupeEvent[] = [];
  let tell: Parameters<NonNullable<EventSink["attach"]>>[0] = () => {};
  let sink: EventSink | undefined;
  return {
    attach: (toHub) => {
      tell = toHub;
    },
    write(event) {
      if (sink === undefined) held.push(event);
      else sink.write(event);
      if (event.kind !== "run.started" || sink !== undefined) return;
      sink = make();
      sink.attach?.(tell);
      for (const before of held.splice(0)) sink.write(before);
    },
    close: () => sink?.close(),
    closeDeadlineMs: Number.POSITIVE_INFINITY,
  };
}
