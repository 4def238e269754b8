import { AsyncLocalStorage } from "node:async_hooks";
import type { Trace } from "./record.ts";

/** One message handled, as a trace viewer shows it. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** The span that sent the message; undefined at the root of a trace. */
  readonly parentId: string | undefined;
  readonly messageKind: string;
  /** On the process's clock. */
  readonly startMs: number;
  readonly durationMs: number;
}

/** Carries the trace of the message being handled to every message sent meanwhile, over awaits too. */
export class Tracer {
  readonly #current = new AsyncLocalStorage<Trace>();
  readonly #prefix: string;
  readonly #now: () => number;
  readonly #report: (span: Span) => void;
  #lastSpan = 0;

  /** @param uid - of the actor, which makes its span ids unique in its system */
  constructor(uid: number, now: () => number, report: (span: Span) => void) {
    this.#prefix = hex(uid);
    this.#now = now;
    this.#report = report;
  }

  /** Trace for a message sent now; a new one outside any handler. */
  outgoing(): Trace {
    return this.#current.getStore() ?? this.#newTrace();
  }

  /** Runs a handler as one span of the trace that its message belongs to. */
  run(incoming: Trace | undefined, messageKind: string, handle: () => unknown): unknown {
    const [traceId, parentId] = incoming ?? this.#newTrace();
    const spanId = this.#newId();
    const startMs = this.#now();
    const finish = (): void =>
      this.#report({ traceId, spanId, parentId, messageKind, startMs, durationMs: this.#now() - startMs });
    const result = this.#current.run([traceId, spanId], handle);
    if (result instanceof Promise) void result.then(finish, finish);
    else finish();
    return result;
  }

  #newTrace(): Trace {
    return [this.#newId().padStart(32, "0"), undefined];
  }

  #newId(): string {
    this.#lastSpan += 1;
    return this.#prefix + hex(this.#lastSpan);
  }
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
