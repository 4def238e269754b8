import type { EventOf } from "../../../job/events/index.ts";
import { type Lane, microseconds, type TraceEvent } from "./trace-event.ts";

/** Maximum number of remembered lanes and of waiting arrows: about 10 MB. */
const CAPACITY = 65_536;

interface Start {
  readonly id: string;
  readonly sentMs: number;
}

/**
 * Draws an arrow for each message from the span that sent it to the span that handled it. The sender's lane is known only when
 * its span has ended, often after the handler's: until then the start of the arrow waits.
 */
export class Arrows {
  readonly #emit: (event: TraceEvent) => void;
  readonly #lanes = new Map<string, Lane>();
  readonly #waiting = new Map<string, Start[]>();

  constructor(emit: (event: TraceEvent) => void) {
    this.#emit = emit;
  }

  /** Notes the lane of a span. @param sentMs - on the trace's clock, as is `beginMs` */
  placed(
    { spanId, parentId }: Pick<EventOf<"message.handled">, "spanId" | "parentId">,
    lane: Lane,
    sentMs: number,
    beginMs: number,
  ): void {
    remember(this.#lanes, spanId, lane);
    const waiting = this.#waiting.get(spanId);
    if (waiting !== undefined) {
      for (const start of waiting) this.#emit(arrowEnd("s", start.id, lane, start.sentMs));
      this.#waiting.delete(spanId);
    }
    if (parentId === undefined) return;
    this.#emit(arrowEnd("f", spanId, lane, beginMs));
    const from = this.#lanes.get(parentId);
    if (from !== undefined) this.#emit(arrowEnd("s", spanId, from, sentMs));
    else this.#wait(parentId, { id: spanId, sentMs });
  }

  #wait(parentId: string, start: Start): void {
    const waiting = this.#waiting.get(parentId);
    if (waiting === undefined) remember(this.#waiting, parentId, [start]);
    else waiting.push(start);
  }
}

/** The start, "s", or the end, "f", of an arrow, at the enclosing slice. */
function arrowEnd(ph: "s" | "f", id: string, { pid, tid }: Lane, timeMs: number): TraceEvent {
  const end = { name: "message", cat: "message", pid, tid, ph, id, ts: microseconds(timeMs) } as const;
  return ph === "s" ? end : { ...end, bp: "e" };
}

/** Adds an entry, and drops the oldest if the map is full. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.set(key, value);
  if (map.size <= CAPACITY) return;
  for (const [oldest] of map) {
    map.delete(oldest);
    break;
  }
}
