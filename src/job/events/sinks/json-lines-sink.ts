import { hostname } from "node:os";
import type { Writable } from "node:stream";
import { schemaVersion, type TroupeEvent } from "../event.ts";
import type { EventSink } from "../hub/sink.ts";
import { describeEvent } from "../words/describe-event.ts";
import { BoundedWriter, fileWriteMs } from "./bounded-writer.ts";
import { RecordFile } from "./record-file.ts";

/** Options of a JSON lines sink. */
export interface JsonLinesOptions {
  /**
   * "plain": the event itself. "pino": with pino's fields before it (level, time, pid, hostname, msg), for
   * `pino-pretty` and other readers of such logs. Default: "plain".
   */
  readonly fields?: "plain" | "pino";
  /** Events within this time are written together, which for a file costs less. Default: 200 for a path, else 0. */
  readonly everyMs?: number;
  /** Whether a path that cannot be written yet is tried again instead of refused; its folder is not created. Default: false. */
  readonly mayWait?: boolean;
}

/**
 * Writes each event as one line of JSON. Numbers have as many digits as it takes to read the same double back, up to
 * 17, so that two losses are equal exactly if they are printed alike. Values that JSON has no number for are written as
 * "NaN", "Infinity" or "-Infinity".
 *
 * A slow reader, or a full disk, delays nothing: 64 MiB are held for it, then events are dropped, and a line of kind
 * `events.dropped` says how many. A partial line is never continued.
 * @param target - a file's path, appended to where it exists; a stream; or, better for a pipe, a file descriptor such
 * as 1, standard output
 * @throws the file system's error for a path that cannot be written, unless it may wait
 */
export function jsonLinesSink(target: string | Writable | number, options: JsonLinesOptions = {}): EventSink {
  const isPath = typeof target === "string";
  const { fields = "plain", everyMs = isPath ? fileWriteMs : 0, mayWait = false } = options;
  const line = fields === "pino" ? pinoLine : toJson;
  let timeMs = 0;
  const notice = (numDropped: number) =>
    `${line({ kind: "events.dropped", numDropped, timeMs, schemaVersion })}\n`;
  const outlet = isPath ? RecordFile.open({ path: () => target, appends: true, mayWait }) : target;
  const writer = new BoundedWriter(outlet, { everyMs, notice });
  return {
    write(event) {
      timeMs = event.timeMs;
      writer.write(`${line(event)}\n`);
    },
    attach: (tell) => writer.onTrouble(tell),
    close: () => writer.close(),
    takesModels: true,
    // The writer waits for slow readers and gives up in time.
    closeDeadlineMs: Number.POSITIVE_INFINITY,
  };
}

/** Writes plain data as JSON, without line breaks; values that JSON has no number for are written as their names. */
export function toJson(value: object): string {
  const text = JSON.stringify(value);
  // JSON writes null for them, which events seldom contain: only then is each value looked at, which takes five times
  // as long.
  return text.includes("null") ? JSON.stringify(value, nameNotFinite) : text;
}

function nameNotFinite(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

const levels = { plain: 30, good: 30, bad: 50, untold: 20 } as const;

function pinoLine(event: TroupeEvent): string {
  const { timeMs, ...rest } = event;
  const { text = event.kind, tone = "untold" } = describeEvent(event) ?? {};
  const { pid } = process;
  return toJson({ level: levels[tone], time: timeMs, pid, hostname: hostname(), ...rest, msg: text });
}
