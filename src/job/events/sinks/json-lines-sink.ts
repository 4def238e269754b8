import { hostname } from "node:os";
import type { Writable } from "node:stream";
import { schemaVersion, type TroupeEvent } from "../event.ts";
import type { EventSink } from "../hub/sink.ts";
import { describeEvent } from "../words/describe-event.ts";
import { BoundedWriter, fileWriteMs } from "./bounded-writer.ts";
import { RecordFile } from "./record-file.ts";

/** How lines are made. */
export interface JsonLinesOptions {
  /**
   * "plain": the event as it is. "pino": with the fields of pino before it (level, time, pid, hostname, msg), for
   * `pino-pretty` and what else reads such logs. "plain"
   */
  readonly fields?: "plain" | "pino";
  /** What comes within so many milliseconds is written at once, which for a file costs less. 200 for a path, else 0 */
  readonly everyMs?: number;
  /**
   * Whether a path that cannot be written yet is tried again like one that fails later, instead of refused; its folder is
   * not made then. false
   */
  readonly mayWait?: boolean;
}

/**
 * Writes each event as one line of JSON. Numbers are written with as many digits as it takes to read the same double
 * back, up to 17: two losses are printed alike only if they are equal bit for bit. What JSON has no number for is
 * written as "NaN", "Infinity" or "-Infinity".
 *
 * A reader that is slow, or a disk that is full, holds no one up: 64 MiB are held for it, then events are left out, and a
 * line of kind `events.dropped` says how many. No line is ever half there and gone on with.
 * @param target - a file's path, which is gone on with where it is there; a stream; or, better for a pipe, a file descriptor
 * such as 1, standard output
 * @throws for a path what the file system says where it cannot be written, unless it may wait
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
    // The writer waits for slow readers, and knows when to give them up.
    closeDeadlineMs: Number.POSITIVE_INFINITY,
  };
}

/** Plain data as JSON, without line breaks; what JSON has no number for is written as its name. */
export function toJson(value: object): string {
  const text = JSON.stringify(value);
  // JSON says null for it, which events seldom hold: only then is each value looked at, which takes five times as long.
  return text.includes("null") ? JSON.stringify(value, nameNotFinite) : text;
}

function nameNotFinite(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

const levels = { plain: 30, good: 30, bad: 50, untold: 20 } as const;

function pinoLine(event: TroupeEvent): string {
  const { timeMs, ...rest } = event;
  const { text = event.kind, tone = "untold" } = describeEvent(event) ?? {};
  return toJson({
    level: levels[tone],
    time: timeMs,
    pid: process.pid,
    hostname: hostname(),
    ...rest,
    msg: text,
  });
}
