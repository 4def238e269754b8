import type { ServerResponse } from "node:http";
import type { TroupeEvent } from "../../events/index.ts";
import { begin, drained } from "./reply.ts";

const beatMs = 15_000;

/** Writes events as they come, each as `event: KIND` and `data: JSON`, until the client is gone or there are no more. */
export async function streamEvents(
  response: ServerResponse,
  events: AsyncIterable<TroupeEvent>,
): Promise<void> {
  begin(response, 200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const iterator = events[Symbol.asyncIterator]();
  // Something now and then tells each side when the other is gone.
  const beat = setInterval(() => response.write(":\n\n"), beatMs);
  response.once("close", () => void iterator.return?.());
  try {
    for (;;) {
      const { value, done } = await iterator.next();
      if (done === true || response.destroyed) break;
      const text = `event: ${value.kind}\ndata: ${JSON.stringify(value)}\n\n`;
      if (!response.write(text)) await drained(response);
    }
  } finally {
    clearInterval(beat);
    response.end();
  }
}
