import type { Writable } from "node:stream";
import { schemaVersion, type TroupeEvent } from "./event.ts";
import type { EventSink } from "./event-hub.ts";
import { LineWriter } from "./line-writer.ts";

/**
 * Writes each event as one line of JSON. Numbers are written with as many digits as it takes to read the same double
 * back, up to 17: two losses are printed alike only if they are equal bit for bit. What JSON has no number for is
 * written as "NaN", "Infinity" or "-Infinity".
 *
 * A reader that is slow holds no one up: 64 Mi characters are held for it, then events are left out, and a line of
 * kind `events.dropped` says how many.
 * @param target - a stream or, better for a pipe, a file descriptor such as 1, standard output
 */
export function jsonLinesSink(target: Writable | number): EventSink {
  const writer = new LineWriter(target);
  let numDropped = 0;
  let timeMs = 0;
  const notice = () => toJson({ kind: "events.dropped", numDropped, timeMs, schemaVersion });
  return {
    write(event) {
      timeMs = event.timeMs;
      // Told together with the first event that is taken again: alone it would be told for each one that is not.
      const lines = numDropped > 0 ? `${notice()}\n${toJson(event)}` : toJson(event);
      numDropped = writer.writeLine(lines) ? 0 : numDropped + 1;
    },
    async close() {
      await writer.flush();
      if (numDropped > 0 && writer.writeLine(notice())) numDropped = 0;
      await writer.flush();
    },
  };
}

/** One event as JSON, without line breaks. */
export function toJson(event: TroupeEvent): string {
  return JSON.stringify(event, (_, value: unknown) =>
    typeof value === "number" && !Number.isFinite(value) ? String(value) : value,
  );
}
