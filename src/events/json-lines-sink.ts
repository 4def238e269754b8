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
  return {
    write(event) {
      const numDropped = writer.takeNumDropped();
      if (numDropped > 0) {
        writer.writeLine(toJson({ kind: "events.dropped", numDropped, timeMs: event.timeMs, schemaVersion }));
      }
      writer.writeLine(toJson(event));
    },
    close: () => writer.flush(),
  };
}

/** One event as JSON, without line breaks. */
export function toJson(event: TroupeEvent): string {
  return JSON.stringify(event, (_, value: unknown) =>
    typeof value === "number" && !Number.isFinite(value) ? String(value) : value,
  );
}
