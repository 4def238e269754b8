import type { Address } from "../protocol/address.ts";
import type { OpenAsk } from "./asks.ts";
import type { Connection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Down, type Failure, fromFailure } from "../protocol/failure.ts";
import type { Link, LinkEnd } from "../transport/link.ts";
import { type Packet, type Received, readPacket } from "../transport/packet.ts";
import { type Envelope, isAnswer, isMessage, RecordType } from "../protocol/record.ts";
import type { Resident } from "./resident.ts";

// Enough to spare most events of a burst; few enough that the first message does not wait for long.
const packetsPerEvent = 64;

/** Takes packets apart and brings each record to where it belongs. */
export class Incoming {
  readonly #endpoint: Endpoint;
  readonly #resident: Resident;

  constructor(endpoint: Endpoint, resident: Resident) {
    this.#endpoint = endpoint;
    this.#resident = resident;
  }

  /** Takes in the packet that the event loop has handed over, and those behind it. */
  onPacket(from: Connection, link: Link, first: Packet): void {
    this.#endpoint.connections.sendByTurns();
    let packet: Packet | undefined = first;
    // Polling for what is there already costs less than half of an event for each.
    for (let count = 0; packet !== undefined; count++) {
      this.accept(from, packet);
      packet = count < packetsPerEvent ? link.poll() : undefined;
    }
    this.#resident.wake();
  }

  /** Bound, so that it can be handed to whatever finds packets. */
  readonly accept = (from: Connection, packet: Packet): void => {
    readPacket(packet, (record) => {
      if (isMessage(record.type)) this.#acceptMessage(from, record);
      else this.#acceptRecord(from, record);
    });
  };

  #acceptMessage(from: Connection, received: Received): void {
    const { type, lane, id, kind, deadlineMs, trace } = received;
    const body = received.isEncoded ? this.#endpoint.codecs.decode(received.body) : received.body;
    const receivedMs = trace === undefined ? 0 : this.#endpoint.clock.now();
    this.#resident.onMessage({ type, id, kind, deadlineMs, trace, receivedMs, body, from, lane });
  }

  #acceptRecord(from: Connection, received: Received): void {
    const endpoint = this.#endpoint;
    if (isAnswer(received.type)) from.take(received.lane);
    const record = received.isEncoded
      ? { ...received, body: endpoint.codecs.decode(received.body) }
      : received;
    if (record.type === RecordType.answer)
      this.#settle(from, record, ({ settle }) => settle.resolve(record.body));
    else if (record.type === RecordType.failure) {
      this.#settle(from, record, ({ settle }) => settle.reject(fromFailure(record.body as Failure)));
    } else if (record.type === RecordType.credit) endpoint.connections.markDirty(from);
    else if (record.type === RecordType.link) {
      const { peer, end } = record.body as { peer: Address; end: LinkEnd };
      endpoint.attach(peer, end);
    } else if (record.type === RecordType.down) {
      const { uid, down } = record.body as { uid: number; down: Down };
      endpoint.ended(uid, down);
    } else this.#resident.onSystemRecord(from, record);
  }

  /** What answers nothing came too late. */
  #settle(from: Connection, record: Envelope, settle: (ask: OpenAsk) => void): void {
    const ask = this.#endpoint.asks.settle(record.id);
    if (ask !== undefined) settle(ask);
    else this.#endpoint.undelivered.late(from, record);
  }
}
