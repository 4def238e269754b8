import { type Address, describe } from "../protocol/address.ts";
import { Asks } from "./asks.ts";
import type { Clock } from "../clock.ts";
import type { CodecSet } from "../transport/codec.ts";
import type { Connection } from "./connection.ts";
import { Connections } from "./connections.ts";
import { ActorDown, type Down } from "../protocol/failure.ts";
import { Incoming } from "./incoming.ts";
import type { LinkEnd } from "../transport/link.ts";
import type { LinkOpener } from "../transport/link-opener.ts";
import type { Delivery } from "../mailbox/mailbox.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import { RecordType } from "../protocol/record.ts";
import type { Resident } from "./resident.ts";
import { connectionLimits } from "../protocol/settings.ts";
import type { Signal } from "../transport/signal.ts";
import { Undelivered } from "./undelivered.ts";
import { type OnDown, Watches } from "./watches.ts";

/** What an endpoint is made of. */
export interface EndpointOptions extends OutboxOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly resident: Resident;
  readonly opener: LinkOpener;
}

/**
 * Where one actor is joined to others: makes its connections, and brings what comes and what ends to its outbox, open
 * questions and watches.
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
  readonly #incoming: Incoming;

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
    this.#incoming = new Incoming(this, resident);
  }

  /** Makes sure that a link to this actor exists or is asked for; undefined when the actor has ended. */
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
      (packet) => this.#incoming.onPacket(connection, link, packet),
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

  /** Takes back every watch on that actor, even if its end is known and has not been told. */
  unwatch(of: Address): void {
    if (this.watches.remove(of.uid)) this.#resident.forgoDown(of);
  }

  /**
   * Takes in that an actor has ended: what it still sent is received first, then what it never took becomes
   * dead letters, and questions and watches hear of it. Returns how many of those there were.
   */
  ended(uid: number, down: Down): number {
    if (this.watches.endOf(uid) !== undefined) return 0;
    const connection = this.connections.get(uid);
    if (connection !== undefined) this.connections.drainOne(connection, this.#incoming.accept);
    const numWatches = this.watches.ended(uid, down);
    this.connections.remove(uid);
    connection?.close();
    const numAsks = this.asks.rejectAllTo(
      uid,
      ({ target, kind }) => new ActorDown(`${describe(target)}.${kind}`, down),
    );
    for (let left = numWatches; left > 0; left--) this.#resident.onDown();
    return numWatches + numAsks;
  }

  /** Enters that this message is being handled, which gives its sender credit. */
  take({ from, lane }: Delivery): void {
    if (from.take(lane)) this.outbox.sendRecord(from, { type: RecordType.credit });
  }

  /** Takes in everything that has arrived, without the event loop. */
  drain(): void {
    this.connections.drain(this.#incoming.accept);
  }

  /**
   * Blocks this thread, receiving meanwhile, until `done` or the deadline. Returns whether it was done.
   * Whatever the resident's `interrupt` throws passes through.
   */
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

  /** Leaves every connection: this actor has ended. */
  close(): void {
    this.asks.close();
    this.connections.leave();
  }
}
