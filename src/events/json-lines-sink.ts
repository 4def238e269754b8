import { hostname } from "node:os";
import type { Writable } from "node:stream";
import { BoundedWriter } from "./bounded-writer.ts";
import { describeEvent } from "./describe-event.ts";
import { schemaVersion, type TroupeEvent } from "./event.ts";
import type { EventSink } from "./event-hub.ts";

/** How lines are made. */
export interface JsonLinesOptions {
  /**
   * "plain": the event as it is. "pino": with the fields of pino before it (level, time, pid, hostname, msg), for
   * `pino-pretty` and what else reads such logs. "plain"
   */
  readonly fields?: "plain" | "pino";
  /** What comes within so many milliseconds is written at once, which for a file costs less. 0 */
  readonly everyMs?: number;
}

/**
 * Writes each event as one line of JSON. Numbers are written with as many digits as it takes to read the same double
 * back, up to 17: two losses are printed alike only if they are equal bit for bit. What JSON has no number for is
 * written as "NaN", "Infinity" or "-Infinity".
 *
 * A reader that is slow holds no one up: 64 MiB are held for it, then events are left out, and a line of
 * kind `events.dropped` says how many.
 * @param target - a stream or, better for a pipe, a file descriptor such as 1, standard output
 */
export function jsonLinesSink(
  target: Writable | number,
  { fields = "plain", everyMs = 0 }: JsonLinesOptions = {},
): EventSink {
  const writer = new BoundedWriter(target, { everyMs });
  const line = fields === "pino" ? pinoLine : toJson;
  let numDropped = 0;
  let timeMs = 0;
  const notice = () => line({ kind: "events.dropped", numDropped, timeMs, schemaVersion });
  return {
    write(event) {
      timeMs = event.timeMs;
      // Told together with the first event that is taken again: alone it would be told for each one that is not.
      const lines = numDropped > 0 ? `${notice()}\n${line(event)}` : line(event);
      numDropped = writer.write(`${lines}\n`) ? 0 : numDropped + 1;
    },
    async close() {
      await writer.flush();
      if (numDropped > 0 && writer.write(`${notice()}\n`)) numDropped = 0;
      await writer.flush();
    },
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
