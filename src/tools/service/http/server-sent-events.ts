import type { ServerResponse } from "node:http";
import type { EventStream } from "../../../job/events/index.ts";
import { drained, eventText, SentEvents } from "../../../job/http.ts";

/**
 * Writes events as they occur, each as `event: KIND` and `data: JSON`, until the client disconnects or they end. A slow client
 * loses events and gets their number as `events.dropped`.
 */
export async function streamEvents(response: ServerResponse, events: EventStream): Promise<void> {
  const sent = new SentEvents(response);
  response.once("close", () => void events.return());
  let numReported = 0;
  try {
    for (;;) {
      const { value, done } = await events.next();
      if (done === true || response.destroyed) break;
      const numDropped = events.numDropped - numReported;
      numReported += numDropped;
      const { kind, timeMs, schemaVersion } = value;
      const lack = { kind: "events.dropped", numDropped, timeMs, schemaVersion };
      sent.send((numDropped > 0 ? eventText(lack.kind, lack) : "") + eventText(kind, value));
      if (sent.isBehind) await drained(response);
    }
  } finally {
    response.end();
  }
}
