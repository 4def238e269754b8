import type { EventOf, TroupeEvent } from "../events/index.ts";
import type { Span } from "./frame.ts";

const maxKept = 2000;

/** Most spans in one send: more cannot be told apart. */
const maxSent = 400;

/** Readings of the clock of spans and that of events at one time. */
interface Clocks {
  readonly timeMs: number;
  readonly clockMs: number;
}

/** The latest work of a traced run, in bounded memory. */
export class RecentSpans {
  #kept: Span[] = [];
  #new: Span[] = [];
  /** Every n-th new span is kept. */
  #every = 1;
  #numNew = 0;
  #began: Clocks | undefined;

  /** @returns whether the event is a span, which nothing else on the page uses */
  take(event: TroupeEvent): boolean {
    switch (event.kind) {
      case "run.started":
        this.#began = event;
        return false;
      case "activity.finished":
        // "compute" marks a moment, not a piece of work.
        if (event.activity !== "compute") this.#add(event, event.activity);
        return true;
      case "message.handled":
        this.#add(event, event.messageKind);
        return true;
      default:
        return false;
    }
  }

  /** The spans since the last call, thinned if there are many. */
  takeNew(): readonly Span[] {
    const spans = this.#new;
    this.#kept = [...this.#kept, ...spans].slice(-maxKept);
    this.#new = [];
    this.#every = 1;
    this.#numNew = 0;
    return spans;
  }

  latest(): readonly Span[] {
    return this.#kept;
  }

  #add(event: EventOf<"activity.finished" | "message.handled">, work: string): void {
    if (this.#numNew++ % this.#every !== 0) return;
    const { timeMs, clockMs } = this.#began ?? { timeMs: event.timeMs, clockMs: event.endMs };
    const offsetMs = timeMs - clockMs;
    this.#new.push({
      actor: event.actor,
      role: event.role,
      work,
      awaited: event.kind === "message.handled" && event.awaited,
      beginMs: event.beginMs + offsetMs,
      endMs: event.endMs + offsetMs,
    });
    if (this.#new.length <= maxSent) return;
    this.#new = this.#new.filter((_, index) => index % 2 === 0);
    this.#every *= 2;
  }
}
