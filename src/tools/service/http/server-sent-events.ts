import type { ServerResponse } from "node:http";
import type { EventStream } from "../../../job/events/index.ts";
import { begin, drained } from "./reply.ts";

const beatMs = 15_000;
/** Beats in which a client that is behind has read nothing. */
const maxSilentBeats = 3;

/**
 * Writes events as they come, each as `event: KIND` and `data: JSON`, until the client is gone or there are no more. One that
 * is slower than they come is told how many it lacks, by `events.dropped`; one that reads nothing is let go.
 */
export async function streamEvents(response: ServerResponse, events: EventStream): Promise<void> {
  begin(response, 200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  let numSilentBeats = 0;
  response.on("drain", () => {
    numSilentBeats = 0;
  });
  // Something now and then tells each side when the other is gone.
  const beat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(":\n\n");
    else if (++numSilentBeats === maxSilentBeats) response.destroy();
  }, beatMs);
  response.once("close", () => void events.return());
  let numTold = 0;
  try {
    for (;;) {
      const { value, done } = await events.next();
      if (done === true || response.destroyed) break;
      const numDropped = events.numDropped - numTold;
      numTold += numDropped;
      const { timeMs, schemaVersion } = value;
      const lack = { kind: "events.dropped", numDropped, timeMs, schemaVersion };
      const text = (numDropped > 0 ? message(lack) : "") + message(value);
      if (!response.write(text)) await drained(response);
    }
  } finally {
    clearInterval(beat);
    response.end();
  }
}

function message(event: { readonly kind: string }): string {
  return `event: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
