import { AsyncLocalStorage } from "node:async_hooks";
import { type Address, systemAddress } from "../protocol/address.ts";
import type { Trace } from "../protocol/record.ts";
import type { Span } from "../protocol/runtime-event.ts";
import type { MessagingSettings } from "../protocol/settings.ts";

/** The facts that a tracer needs about a message. */
export interface TracedMessage {
  readonly kind: string;
  readonly trace: Trace | undefined;
  readonly receivedMs: number;
  readonly from: string;
}

/** The span being handled; "untraced" if no trace may start here. */
type Current = { readonly traceId: string; readonly spanId: string } | "untraced";

/** Passes the trace of the message being handled to every message sent meanwhile, across awaits too. */
export class Tracer {
  readonly #current = new AsyncLocalStorage<Current>();
  readonly #prefix: string;
  readonly #every: number;
  readonly #now: () => number;
  readonly #report: (span: Span) => void;
  #numIds = 0;
  #numUntraced = 0;

  /** @param uid - of the actor, for ids @param every - every n-th message outside any trace starts one; 0: none */
  constructor(uid: number, every: number, now: () => number, report: (span: Span) => void) {
    this.#prefix = hex(uid);
    this.#every = every;
    this.#now = now;
    this.#report = report;
  }

  /** Returns the trace for a message sent now: that of the message being handled, or a new one when its turn has come. */
  outgoing(): Trace | undefined {
    const current = this.#current.getStore();
    if (current === "untraced") return undefined;
    if (current !== undefined) return [current.traceId, current.spanId, this.#now()];
    return this.#isDue() ? [this.#newTraceId(), undefined, this.#now()] : undefined;
  }

  /** Runs a handler, as one span if its message belongs to a trace. */
  run(message: TracedMessage, handle: () => unknown): unknown {
    if (message.trace === undefined)
      return this.#current.getStore() === undefined ? handle() : this.#current.exit(handle);
    const [traceId, parentId, sentMs] = message.trace;
    return this.#span({ ...message, traceId, parentId, sentMs }, handle);
  }

  /** Runs `body` as the root of a trace when its turn has come; otherwise nothing that it causes is traced. */
  begin<T>(kind: string, from: string, body: () => T): T {
    if (!this.#isDue()) return this.#current.run("untraced", body);
    const nowMs = this.#now();
    const root = { kind, from, traceId: this.#newTraceId(), parentId: undefined };
    return this.#span({ ...root, sentMs: nowMs, receivedMs: nowMs }, body);
  }

  /**
   * Starts the span of a message that a blocking handler has taken from its mailbox: messages sent from here on belong to its
   * trace.
   * @returns a function that ends the span and reports it
   */
  open(message: TracedMessage): () => void {
    const outer = this.#current.getStore();
    if (message.trace === undefined) {
      this.#current.enterWith("untraced");
      return () => this.#current.enterWith(outer as Current);
    }
    const [traceId, parentId, sentMs] = message.trace;
    const { kind: messageKind, from, receivedMs } = message;
    const spanId = this.#newId();
    const beginMs = this.#now();
    this.#current.enterWith({ traceId, spanId });
    return () => {
      this.#current.enterWith(outer as Current);
      const times = { sentMs, receivedMs, beginMs, endMs: this.#now() };
      this.#report({ traceId, spanId, parentId, from, messageKind, awaited: false, ...times });
    };
  }

  #span<T>(
    span: Omit<Span, "messageKind" | "spanId" | "awaited" | "beginMs" | "endMs"> & { readonly kind: string },
    body: () => T,
  ): T {
    const { traceId, parentId, from, kind: messageKind, sentMs, receivedMs } = span;
    const spanId = this.#newId();
    const beginMs = this.#now();
    let awaited = false;
    const finish = (): void => {
      const times = { sentMs, receivedMs, beginMs, endMs: this.#now() };
      this.#report({ traceId, spanId, parentId, from, messageKind, awaited, ...times });
    };
    const result = this.#current.run({ traceId, spanId }, body);
    if (result instanceof Promise) {
      awaited = true;
      void result.then(finish, finish);
    } else finish();
    return result;
  }

  #isDue(): boolean {
    this.#numUntraced += 1;
    return this.#every > 0 && this.#numUntraced % this.#every === 0;
  }

  #newTraceId(): string {
    return this.#newId().padStart(32, "0");
  }

  #newId(): string {
    this.#numIds += 1;
    return this.#prefix + hex(this.#numIds);
  }
}

/** Makes an actor's tracer; undefined without tracing. Only the system's messages start traces, so none is partial. */
export function makeTracer(
  { uid }: Pick<Address, "uid">,
  { traceEvery }: MessagingSettings,
  now: () => number,
  report: (span: Span) => void,
): Tracer | undefined {
  if (traceEvery === 0) return undefined;
  return new Tracer(uid, uid === systemAddress.uid ? traceEvery : 0, now, report);
}

const hex = (value: number): string => value.toString(16).padStart(8, "0");
