import { TroupeError } from "../../errors/index.ts";
import type { StatusBoard } from "../inspection/status-board.ts";
import type { Endpoint } from "../messaging/endpoint.ts";
import type { Delivery } from "../messaging/resident.ts";
import type { TracedMessage, Tracer } from "../messaging/tracer.ts";
import { describe } from "../protocol/address.ts";
import { RecordType } from "../protocol/record.ts";
import { type StreamDemand, streamKind } from "../protocol/streams.ts";
import type { Behavior } from "./define-actor.ts";
import { isStream, Streams } from "./streams.ts";

/** A kind of message and its handler. */
interface KindEntry {
  /** Its number on the status board. */
  readonly index: number;
  /** Only the runtime's own actors take more than the message. */
  readonly handler: (message: unknown, delivery: Delivery, endpoint: Endpoint) => unknown;
  readonly isConcurrent: boolean;
}

/** Parts of the cell that {@link Handling} uses. */
export interface HandlingOptions {
  readonly endpoint: Endpoint;
  readonly board: StatusBoard;
  readonly tracer: Tracer | undefined;
  /** Kinds that may be handled while another handler awaits. */
  readonly concurrent: readonly string[] | "questions";
  /** The handler of a statement failed. */
  onFailure(error: unknown): void;
  /** A handler that awaited has finished. */
  onSettled(): void;
}

/** Calls the handlers of messages and sends the answers. */
export class Handling {
  readonly #options: HandlingOptions;
  readonly #entries = new Map<string, KindEntry>();
  readonly #streams: Streams;
  #awaiting: Delivery | undefined;
  #current: Delivery | undefined;
  #numConcurrent = 0;

  constructor(options: HandlingOptions) {
    this.#options = options;
    this.#streams = new Streams(options.endpoint.address);
  }

  /** Registers the handlers of the actor, and those of streams. */
  adopt({ handlers }: Behavior<unknown>): void {
    const { concurrent } = this.#options;
    const next = (demand: StreamDemand, { from }: Delivery) => this.#streams.next(demand, from.peer.uid);
    const all = {
      ...handlers,
      [streamKind.next]: next,
      [streamKind.nextConcurrent]: next,
      [streamKind.end]: ({ stream }: Pick<StreamDemand, "stream">) => this.#streams.end(stream),
    };
    for (const [index, [kind, handler]] of Object.entries(all).entries()) {
      const isOwn = kind === streamKind.nextConcurrent || kind === streamKind.end;
      const isConcurrent = isOwn || (concurrent !== "questions" && concurrent.includes(kind));
      this.#entries.set(kind, { index, handler: handler as KindEntry["handler"], isConcurrent });
    }
  }

  /** Ends the streams that an actor was reading which has ended. */
  readerEnded(uid: number): void {
    this.#streams.readerEnded(uid);
  }

  /** All kinds, in the order the status board numbers them. */
  get kinds(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /** Whether a handler awaits that is not concurrent, so that no other may begin. */
  get isBusy(): boolean {
    return this.#awaiting !== undefined;
  }

  /** Whether any handler is still at work. */
  get isQuiet(): boolean {
    return this.#awaiting === undefined && this.#numConcurrent === 0;
  }

  /** Position of the kind being handled, -1 when none is. */
  get currentKindIndex(): number {
    return this.#current === undefined ? -1 : (this.#entries.get(this.#current.kind)?.index ?? -1);
  }

  /** Handles a message. An error becomes the answer to a question; for a statement it becomes this actor's failure. */
  handle(delivery: Delivery): void {
    const entry = this.#accept(delivery);
    if (entry === undefined) return;
    try {
      const isConcurrent = entry.isConcurrent || this.#isConcurrentQuestion(delivery);
      this.#conclude(delivery, this.#call(delivery, entry), isConcurrent);
    } catch (error) {
      this.#failed(delivery, error);
    }
  }

  /** Handles a message in the middle of another's handler. The error of a statement breaks that handler off. */
  interruptWith(delivery: Delivery): void {
    const entry = this.#accept(delivery);
    if (entry === undefined) return;
    try {
      this.#conclude(delivery, this.#call(delivery, entry), true);
    } catch (error) {
      if (delivery.type === RecordType.tell) throw error;
      this.#failed(delivery, error);
    } finally {
      this.#options.board.enter("handling", this.currentKindIndex);
    }
  }

  /**
   * Notes that a blocking handler has taken this message itself, so that it is the one being handled for now.
   * @returns a function that ends this: the actor handles the earlier message again
   */
  taken(delivery: Delivery): () => void {
    const { board, tracer, endpoint } = this.#options;
    const outer = this.#current;
    this.#current = delivery;
    board.enterHandling(this.currentKindIndex, endpoint.clock.now());
    const endSpan = tracer?.open(traced(delivery));
    return () => {
      this.#current = outer;
      board.enter("handling", this.currentKindIndex);
      endSpan?.();
    };
  }

  #call(delivery: Delivery, { handler }: KindEntry): unknown {
    const { tracer, endpoint } = this.#options;
    const outer = this.#current;
    this.#current = delivery;
    try {
      if (tracer === undefined) return handler(delivery.body, delivery, endpoint);
      return tracer.run(traced(delivery), () => handler(delivery.body, delivery, endpoint));
    } finally {
      this.#current = outer;
    }
  }

  #isConcurrentQuestion({ type }: Delivery): boolean {
    return this.#options.concurrent === "questions" && type === RecordType.ask;
  }

  /** Counts the message as taken and finds its handler; undefined if it arrived too late or its kind has none. */
  #accept(delivery: Delivery): KindEntry | undefined {
    const { endpoint, board } = this.#options;
    endpoint.take(delivery);
    const nowMs = endpoint.clock.now();
    if (delivery.deadlineMs !== 0 && delivery.deadlineMs <= nowMs) {
      endpoint.undelivered.refused(delivery, "Expired");
      return undefined;
    }
    const entry = this.#entries.get(delivery.kind);
    if (entry === undefined) refuseKind(endpoint, delivery);
    else board.enterHandling(entry.index, nowMs);
    return entry;
  }

  #conclude(delivery: Delivery, result: unknown, concurrent: boolean): void {
    if (!(result instanceof Promise)) {
      this.#answer(delivery, result);
      return;
    }
    if (concurrent) this.#numConcurrent += 1;
    else this.#current = this.#awaiting = delivery;
    result
      .then((value) => this.#answer(delivery, value))
      .catch((error: unknown) => this.#failed(delivery, error))
      .finally(() => {
        if (concurrent) this.#numConcurrent -= 1;
        else this.#current = this.#awaiting = undefined;
        this.#options.onSettled();
      })
      .catch((error: unknown) => this.#options.onFailure(error));
  }

  #answer(delivery: Delivery, result: unknown): void {
    if (delivery.type !== RecordType.ask) return;
    const { outbox } = this.#options.endpoint;
    if (typeof result !== "object" || result === null || !isStream(result)) outbox.answer(delivery, result);
    else {
      const isConcurrent = this.#entries.get(delivery.kind)?.isConcurrent === true;
      outbox.answer(delivery, this.#streams.open(result, delivery.from.peer.uid, isConcurrent));
    }
  }

  #failed(delivery: Delivery, error: unknown): void {
    if (delivery.type === RecordType.tell) this.#options.onFailure(error);
    else this.#options.endpoint.outbox.answerFailure(delivery, error);
  }
}

/** Returns the facts about a message for the tracer. */
function traced({ kind, trace, receivedMs, from }: Delivery): TracedMessage {
  return { kind, trace, receivedMs, from: describe(from.peer) };
}

/** Refuses a message of a kind that its receiver has no handler for. */
export function refuseKind(endpoint: Endpoint, delivery: Delivery): void {
  endpoint.undelivered.refused(delivery, "WrongProtocol");
  if (delivery.type === RecordType.tell) return;
  const { kind } = delivery;
  const actor = describe(endpoint.address);
  const message = {
    where: `ask ${actor}.${kind}`,
    expected: "a kind that the actor has a handler for",
    got: kind,
    hint: "compare both sides' protocol",
  };
  endpoint.outbox.answerFailure(
    delivery,
    new TroupeError("KIND_UNKNOWN", { ...message, fields: { actor, kind } }),
  );
}
