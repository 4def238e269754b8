import type { Clock } from "../clock.ts";
import { type Address, describe } from "../protocol/address.ts";
import { ActorDown, type Down, type Failure, fromFailure } from "../protocol/failure.ts";
import {
  type EndNews,
  type Envelope,
  isAnswer,
  isMessage,
  type Outgoing,
  RecordType,
} from "../protocol/record.ts";
import type { CodecSet } from "../transport/codec.ts";
import type { Link, LinkEnd } from "../transport/link.ts";
import type { LinkOpener } from "../transport/link-opener.ts";
import { type Packet, type ReceivedRecord, readPacket } from "../transport/packet.ts";
import type { Signal } from "../transport/signal.ts";
import { Asks, type OpenAsk } from "./asks.ts";
import { type Connection, connectionLimits } from "./connection.ts";
import { Connections } from "./connections.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import type { Delivery, Resident } from "./resident.ts";
import { Undelivered } from "./undelivered.ts";
import { type OnDown, Watches } from "./watches.ts";

// Enough to save most events of a burst, few enough that the first message does not wait for long.
const packetsPerEvent = 64;

/** Parts of an {@link Endpoint}. */
export interface EndpointOptions extends OutboxOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly resident: Resident;
  readonly opener: LinkOpener;
}

/**
 * The messaging of one actor. It makes the actor's connections, unpacks the packets that arrive, and passes each record, and
 * each end of another actor, to the open questions, the watches or the resident.
 */
export class Endpoint {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly codecs: CodecSet;
  readonly outbox: Outbox;
  readonly asks: Asks;
  readonly watches = new Watches();
  readonly undelivered: Undelivered;
  readonly connections: Connections;
  readonly #opener: LinkOpener;
  readonly #resident: Resident;

  constructor(options: EndpointOptions) {
    const { address, clock, signal, codecs, opener, resident } = options;
    this.address = address;
    this.clock = clock;
    this.signal = signal;
    this.codecs = codecs;
    this.outbox = new Outbox(this, options);
    this.asks = new Asks(clock);
    this.undelivered = new Undelivered(this, resident);
    this.connections = new Connections(connectionLimits(options.settings), this.undelivered);
    this.#opener = opener;
    this.#resident = resident;
  }

  /** Returns the connection to this actor, and requests a link if there is none; undefined if the actor has ended. */
  connect(to: Address): Connection | undefined {
    const existing = this.connections.get(to.uid);
    if (existing !== undefined) return existing;
    if (this.watches.endOf(to.uid) !== undefined) return undefined;
    const connection = this.connections.create(to);
    this.#resident.requestLink(to);
    return connection.closed ? undefined : connection;
  }

  /** Opens this actor's end of a link to `peer`. */
  attach(peer: Address, end: LinkEnd): Connection {
    const connection = this.connections.get(peer.uid) ?? this.connections.create(peer);
    const link = this.#opener.open(end);
    connection.open(link);
    link.listen(
      (packet) => this.#onPacket(connection, link, packet),
      () => this.undelivered.garbled(connection),
    );
    this.connections.markDirty(connection);
    return connection;
  }

  /** Calls `onDown` once when that actor has ended, also when it has already. */
  watch(of: Address, onDown: OnDown): void {
    if (this.watches.add(of.uid, onDown)) this.#resident.onDown();
    else this.#resident.requestDown(of);
  }

  /** Removes every watch on that actor, even if its end is known and its watchers were not called yet. */
  unwatch(of: Address): void {
    if (this.watches.remove(of.uid)) this.#resident.forgoDown(of);
  }

  /**
   * Handles the end of an actor. Messages that it still sent are received first; messages that it never took become dead
   * letters; open questions are rejected and watches become due. Returns the number of those questions and watches.
   */
  ended(uid: number, down: Down): number {
    if (this.watches.endOf(uid) !== undefined) return 0;
    const connection = this.connections.get(uid);
    if (connection !== undefined) this.connections.drainOne(connection, this.#accept);
    const numWatches = this.watches.ended(uid, down);
    this.connections.remove(uid);
    connection?.close();
    if (connection !== undefined) this.#resident.onPeerEnded(uid);
    const numAsks = this.asks.rejectAllTo(
      uid,
      ({ target, kind }) => new ActorDown(`${describe(target)}.${kind}`, down),
    );
    for (let left = numWatches; left > 0; left--) this.#resident.onDown();
    return numWatches + numAsks;
  }

  /** Reports a message to an actor that has ended. */
  unreachable(to: Address, message: Outgoing): void {
    this.undelivered.unreachable(to, message);
  }

  /** Counts this message as taken, which gives its sender credit. */
  take({ from, lane }: Delivery): void {
    if (from.take(lane)) this.outbox.sendRecord(from, { type: RecordType.credit });
  }

  /** Receives everything that has arrived, without the event loop. */
  drain(): void {
    this.connections.drain(this.#accept);
  }

  /** Blocks this thread, receiving, until `done` or the deadline. Returns whether it was done; throws what `interrupt` throws. */
  blockUntil(done: () => boolean, deadlineMs: number): boolean {
    this.connections.sendAtOnce();
    for (;;) {
      const seen = this.signal.sequence;
      this.drain();
      this.#resident.interrupt();
      if (done()) return true;
      const leftMs = deadlineMs - this.clock.now();
      if (leftMs <= 0) return false;
      this.signal.sleep(seen, leftMs);
    }
  }

  /** Closes every connection because this actor has ended. */
  close(): void {
    this.asks.close();
    this.connections.leave();
  }

  /** Receives the packet that the event loop delivered, and those behind it. */
  #onPacket(from: Connection, link: Link, first: Packet): void {
    this.connections.sendByTurns();
    let packet: Packet | undefined = first;
    // Polling for packets that are there already costs less than half as much as an event for each.
    for (let count = 0; packet !== undefined; count++) {
      this.#accept(from, packet);
      packet = count < packetsPerEvent ? link.poll() : undefined;
    }
    this.#resident.wake();
  }

  /** Bound, so that it can be passed as a callback. */
  readonly #accept = (from: Connection, packet: Packet): void => {
    readPacket(packet, (record) => {
      if (isMessage(record.type)) this.#acceptMessage(from, record);
      else this.#acceptRecord(from, record);
    });
  };

  #acceptMessage(from: Connection, received: ReceivedRecord): void {
    const { type, lane, id, kind, deadlineMs, trace } = received;
    const body = received.isEncoded ? this.codecs.decode(received.body) : received.body;
    const receivedMs = trace === undefined ? 0 : this.clock.now();
    this.#resident.onMessage({ type, id, kind, deadlineMs, trace, receivedMs, body, from, lane });
  }

  #acceptRecord(from: Connection, received: ReceivedRecord): void {
    if (isAnswer(received.type)) from.take(received.lane);
    const record = received.isEncoded ? { ...received, body: this.codecs.decode(received.body) } : received;
    if (record.type === RecordType.answer)
      this.#settle(from, record, ({ settle }) => settle.resolve(record.body));
    else if (record.type === RecordType.failure) {
      this.#settle(from, record, ({ settle }) => settle.reject(fromFailure(record.body as Failure)));
    } else if (record.type === RecordType.credit) this.connections.markDirty(from);
    else if (record.type === RecordType.link) {
      const { peer, end } = record.body as { peer: Address; end: LinkEnd };
      this.attach(peer, end);
    } else if (record.type === RecordType.down) {
      const { uid, down, isSibling } = record.body as EndNews;
      this.ended(uid, down);
      if (isSibling && this.watches.siblingEnded(uid, down)) this.#resident.onDown();
    } else this.#resident.onSystemRecord(from, record);
  }

  /** An answer without an open question came too late. */
  #settle(from: Connection, record: Envelope, settle: (ask: OpenAsk) => void): void {
    const ask = this.asks.settle(record.id);
    if (ask !== undefined) settle(ask);
    else this.undelivered.late(from, record);
  }
}
