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
  readonly #every: number;
  readonly #now: () => number;
  readonly #report: (span: Span) => void;
  #numIds = 0;
  #numUntraced = 0;

  /**
   * @param uid - of the actor, which makes its ids unique in its system
   * @param every - of the messages sent outside any trace, each so-many-th begins one
   */
  constructor(uid: number, every: number, now: () => number, report: (span: Span) => void) {
    this.#prefix = hex(uid);
    this.#every = every;
    this.#now = now;
    this.#report = report;
  }

  /** Trace for a message sent now: that of the message being handled, or a new one when its turn has come. */
  outgoing(): Trace | undefined {
    const current = this.#current.getStore();
    if (current !== undefined) return current;
    this.#numUntraced += 1;
    return this.#numUntraced % this.#every === 0 ? [this.#newId().padStart(32, "0"), undefined] : undefined;
  }

  /** Runs a handler, as one span if its message belongs to a trace. */
  run(incoming: Trace | undefined, messageKind: string, handle: () => unknown): unknown {
    if (incoming === undefined) {
      return this.#current.getStore() === undefined ? handle() : this.#current.exit(handle);
    }
    const [traceId, parentId] = incoming;
    const spanId = this.#newId();
    const startMs = this.#now();
    const finish = (): void =>
      this.#report({ traceId, spanId, parentId, messageKind, startMs, durationMs: this.#now() - startMs });
    const result = this.#current.run([traceId, spanId], handle);
    if (result instanceof Promise) void result.then(finish, finish);
    else finish();
    return result;
  }

  #newId(): string {
    this.#numIds += 1;
    return this.#prefix + hex(this.#numIds);
  }
}

/** The tracer of one actor, undefined where tracing is off. */
export function makeTracer(
  uid: number,
  every: number,
  now: () => number,
  report: (span: Span) => void,
): Tracer | undefined {
  return every === 0 ? undefined : new Tracer(uid, every, now, report);
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
