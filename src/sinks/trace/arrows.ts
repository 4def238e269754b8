import type { EventOf } from "../../events/index.ts";
import { type Lane, microseconds, type TraceEvent } from "./trace-event.ts";

/** Spans whose lanes are remembered, and arrows that wait for theirs: some 10 MB. */
const CAPACITY = 65_536;

interface Start {
  readonly id: string;
  readonly sentMs: number;
}

/**
 * Draws an arrow for each message from the handling that sent it to the handling it caused. A sender's lane is known only
 * when it has finished, often after what it caused: until then the arrow's start waits.
 */
export class Arrows {
  readonly #emit: (event: TraceEvent) => void;
  readonly #lanes = new Map<string, Lane>();
  readonly #waiting = new Map<string, Start[]>();

  constructor(emit: (event: TraceEvent) => void) {
    this.#emit = emit;
  }

  /** A span has its place. */
  placed(span: EventOf<"message.handled">, lane: Lane): void {
    const { spanId, parentId, sentMs, beginMs } = span;
    remember(this.#lanes, spanId, lane);
    for (const start of this.#waiting.get(spanId) ?? []) this.#begin(start, lane);
    this.#waiting.delete(spanId);
    if (parentId === undefined) return;
    this.#emit({ ...arrow, ...lane, ph: "f", bp: "e", id: spanId, ts: microseconds(beginMs) });
    const start = { id: spanId, sentMs };
    const from = this.#lanes.get(parentId);
    if (from !== undefined) this.#begin(start, from);
    else remember(this.#waiting, parentId, [...(this.#waiting.get(parentId) ?? []), start]);
  }

  #begin({ id, sentMs }: Start, lane: Lane): void {
    this.#emit({ ...arrow, ...lane, ph: "s", id, ts: microseconds(sentMs) });
  }
}

const arrow = { name: "message", cat: "message" } as const;

/** Forgets the oldest entry where there is no room. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.set(key, value);
  if (map.size <= CAPACITY) return;
  for (const [oldest] of map) {
    map.delete(oldest);
    break;
  }
}
