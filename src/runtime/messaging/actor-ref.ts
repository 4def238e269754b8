import type { Transferable } from "node:worker_threads";
import { describeValue, TroupeError } from "../../errors/index.ts";
import type { Address, Addressed } from "../protocol/address.ts";
import { ActorDown } from "../protocol/failure.ts";
import type { AskKind, In, Item, Kind, Out, StreamKind } from "../protocol/messages.ts";
import { type OpenedStream, type StreamBatch, type StreamDemand, streamKind } from "../protocol/streams.ts";
import type { Codec } from "../transport/codec.ts";

/** Options of sending a message. */
export interface TellOptions {
  /** Parts of the message that change owner instead of being copied. */
  readonly transfer?: readonly Transferable[];
  /**
   * Whether it may wait for this actor's next message to the same receiver, its next wait or the end of its turn: they leave together,
   * and wake the receiver once. Default: false.
   */
  readonly lazy?: boolean;
}

/** Options of asking a question. */
export interface AskOptions extends TellOptions {
  /** How long to wait for the answer, in ms. A question that is not taken by then is dropped unread. */
  readonly deadlineMs: number;
}

/** Options of reading a stream. */
export interface StreamOptions extends AskOptions {
  /** How long to wait for the next item, in ms. */
  readonly deadlineMs: number;
  /** Most items in one message. Default: 16. */
  readonly window?: number;
}

/** The sending side of the actor that holds a ref. */
export interface Sender {
  tell(to: Address, kind: string, message: unknown, options: TellOptions | undefined): boolean;
  ask(to: Address, kind: string, message: unknown, options: AskOptions): Promise<unknown>;
  ready(to: Address): Promise<void>;
}

/** A handle to an actor, bound to its holder. In a message it arrives as a ref that the receiver can use. */
export class ActorRef<P> implements Addressed {
  readonly #sender: Sender;
  readonly #target: { readonly address: Address };

  /** Made by the runtime. `target.address` changes when a supervisor restarts the actor. */
  constructor(sender: Sender, target: { readonly address: Address }) {
    this.#sender = sender;
    this.#target = target;
  }

  /** The address of the present incarnation. */
  get address(): Address {
    return this.#target.address;
  }

  get name(): string {
    return this.address.name;
  }

  /** Returns a ref to the present incarnation only. Once that has ended, the ref leads to a dead actor, even after a restart. */
  pinned(): ActorRef<P> {
    return new ActorRef(this.#sender, { address: this.address });
  }

  /**
   * Sends a message without awaiting an answer; a question's answer is dropped. The runtime owns the message from here on: do
   * not change it.
   * @returns false if it waits for credit: `await ready()` before sending more
   * @throws {TroupeError} `OUTBOX_FULL` if too many messages wait for credit
   */
  tell<K extends Kind<P>>(kind: K, message: In<P, K>, options?: TellOptions): boolean {
    return this.#sender.tell(this.address, kind, message, options);
  }

  /**
   * Sends a question and resolves with its answer.
   * @throws {ActorDown} as soon as the actor has ended
   * @throws {AskTimeout} if no answer came in time; the actor may still handle the question
   * @throws {TroupeError} the handler's error with its code, or `ACTOR_THREW` if it has none
   */
  ask<K extends AskKind<P>>(kind: K, message: In<P, K>, options: AskOptions): Promise<Out<P, K>> {
    return this.#sender.ask(this.address, kind, message, options) as Promise<Out<P, K>>;
  }

  /**
   * Asks a question that is answered by a stream, and reads its items in order. They are made as they are read: at most two
   * windows of them are under way. Leaving the loop ends the stream.
   *
   * ```ts
   * for await (const token of writer.stream("write", { prompt }, { deadlineMs: 10_000 })) print(token);
   * ```
   * @throws {ActorDown} as soon as the actor has ended
   * @throws {AskTimeout} if no item came in time
   * @throws {TroupeError} the error of the handler, after the items before it; `STREAM_ENDED` if it answers with no stream
   */
  async *stream<K extends StreamKind<P>>(
    kind: K,
    message: In<P, K>,
    { window = 16, ...options }: StreamOptions,
  ): AsyncGenerator<Item<P, K>, void> {
    const sender = this.#sender;
    const { deadlineMs } = options;
    const opened = await sender.ask(this.address, kind, message, options);
    const { stream, producer, next } = checkOpened(kind, opened);
    const demand: StreamDemand = { stream, count: window };
    const more = () => sender.ask(producer, next, demand, { deadlineMs }) as Promise<StreamBatch>;
    let isOver = false;
    try {
      for (let asked = more(); !isOver; ) {
        const { items, isDone } = await asked;
        isOver = isDone;
        if (!isDone) {
          asked = more();
          asked.catch(() => {}); // thrown where it is awaited, unless the reader leaves before
        }
        yield* items as Item<P, K>[];
      }
    } catch (error) {
      isOver = error instanceof ActorDown;
      throw error;
    } finally {
      if (!isOver) sender.tell(producer, streamKind.end, { stream }, undefined);
    }
  }

  /** Resolves when a data message would be sent at once. */
  ready(): Promise<void> {
    return this.#sender.ready(this.address);
  }
}

function checkOpened(kind: string, answer: unknown): OpenedStream {
  if (typeof answer === "object" && answer !== null && "producer" in answer) return answer as OpenedStream;
  throw new TroupeError("STREAM_ENDED", {
    where: `stream ${kind}`,
    expected: "a handler that returns an async iterable",
    got: describeValue(answer),
    hint: "make it an async generator, or use ask",
  });
}

/** Returns the codec for refs in messages: the address travels, and the receiver makes its own ref from it. */
export function refCodec(holder: () => Sender): Codec {
  return {
    tag: "actor-ref",
    accepts: (value) => value instanceof ActorRef,
    encode: (value) => ({ ...(value as ActorRef<unknown>).address }),
    decode: (data) => new ActorRef(holder(), { address: data as Address }),
  };
}
