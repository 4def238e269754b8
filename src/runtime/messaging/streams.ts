import type { StreamOptions } from "./actor-ref.ts";
import { type Address, describe } from "../protocol/address.ts";
import type { Connection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";
import {
  ActorDown,
  AskTimeout,
  type Down,
  type Failure,
  fromFailure,
  toFailure,
} from "../protocol/failure.ts";
import type { Delivery } from "../mailbox/mailbox.ts";
import { type Envelope, RecordType } from "../protocol/record.ts";
import { StreamConsumer } from "./stream-consumer.ts";
import { StreamProducer } from "./stream-producer.ts";

/** The streams one actor reads and those it feeds. */
export class Streams {
  readonly #endpoint: Endpoint;
  readonly #consumers = new Map<number, StreamConsumer>();
  readonly #producers = new Map<Connection, Map<number, StreamProducer>>();
  #lastId = 0;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** Opens a stream: `send` sends the request under the id given to it. */
  open(to: Address, kind: string, send: (id: number) => void, options: StreamOptions): StreamConsumer {
    this.#lastId -= 1; // below zero, so that an answer's id never names a stream
    const id = this.#lastId;
    const endpoint = this.#endpoint;
    const consumer = new StreamConsumer({
      target: to,
      credits: options.credits,
      want: (count) => this.#toProducer(to, { type: RecordType.wantItems, id, kind, body: count }),
      cancel: () => this.#toProducer(to, { type: RecordType.cancelStream, id, kind }),
      finished: () => this.#consumers.delete(id),
      expireAfter: (run) => endpoint.clock.after(options.deadlineMs, run, { background: true }),
      silence: () => new AskTimeout(to, kind, options.deadlineMs),
    });
    this.#consumers.set(id, consumer);
    send(id);
    return consumer;
  }

  /** Feeds a stream that `delivery` asked for. */
  produce(delivery: Delivery, items: unknown): void {
    const { from, id, kind, credits } = delivery;
    const endpoint = this.#endpoint;
    const producer = new StreamProducer(items as Iterable<unknown>, {
      item: (item) => endpoint.outbox.reply(from, RecordType.item, id, kind, item),
      end: (error) => {
        this.#producers.get(from)?.delete(id);
        const failure = error === undefined ? undefined : toFailure(error, describe(endpoint.address));
        endpoint.outbox.sendRecord(from, { type: RecordType.endStream, id, kind, body: failure });
      },
    });
    const ofConsumer = this.#producers.get(from) ?? new Map<number, StreamProducer>();
    this.#producers.set(from, ofConsumer.set(id, producer));
    producer.want(credits);
  }

  /** Takes a record of a stream; returns false when it is none. */
  accept(from: Connection, record: Envelope): boolean {
    switch (record.type) {
      case RecordType.item:
        this.#consumers.get(record.id)?.put(record.body);
        return true;
      case RecordType.endStream:
        this.#consumers
          .get(record.id)
          ?.end(record.body === undefined ? undefined : fromFailure(record.body as Failure));
        return true;
      case RecordType.failure:
        return this.fail(record.id, fromFailure(record.body as Failure));
      case RecordType.wantItems:
        this.#producers
          .get(from)
          ?.get(record.id)
          ?.want(record.body as number);
        return true;
      case RecordType.cancelStream:
        this.#producers.get(from)?.get(record.id)?.cancel();
        return true;
      default:
        return false;
    }
  }

  /** Ends the stream of this id with an error; returns false when there is none. */
  fail(id: number, error: Error): boolean {
    const consumer = this.#consumers.get(id);
    consumer?.end(error);
    return consumer !== undefined;
  }

  /** Ends everything that went to or came from this actor; returns how many streams it fed. */
  targetDown(uid: number, down: Down): number {
    const orphans = [...this.#consumers.values()].filter(({ target }) => target.uid === uid);
    for (const consumer of orphans) consumer.end(new ActorDown(`stream ${describe(consumer.target)}`, down));
    for (const [from, producers] of this.#producers) {
      if (from.peer.uid !== uid) continue;
      for (const producer of producers.values()) producer.cancel();
      this.#producers.delete(from);
    }
    return orphans.length;
  }

  #toProducer(to: Address, record: { type: RecordType; id: number; kind: string; body?: unknown }): void {
    this.#endpoint.outbox.sendRecord(this.#endpoint.connect(to), record);
  }
}
