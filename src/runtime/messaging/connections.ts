import type { Address } from "../protocol/address.ts";
import type { Packet } from "../transport/packet.ts";
import { Connection, type ConnectionLimits, type Lost } from "./connection.ts";

/** Who hears of what the connections could not deliver. */
export interface LossListener {
  lost(connection: Connection, lost: Lost): void;
  dropped(connection: Connection, count: number): void;
}

/** All connections of one actor, flushed together at the end of each turn of the loop. */
export class Connections {
  #synchronous = false;
  readonly #limits: ConnectionLimits;
  readonly #listener: LossListener;
  readonly #byUid = new Map<number, Connection>();
  #dirty: Connection[] = [];
  #flushScheduled = false;

  constructor(limits: ConnectionLimits, listener: LossListener) {
    this.#limits = limits;
    this.#listener = listener;
  }

  get(uid: number): Connection | undefined {
    return this.#byUid.get(uid);
  }

  /** A connection to `peer` that has no link yet. */
  create(peer: Address): Connection {
    const connection = new Connection(peer, this.#limits, (lost) => this.#listener.lost(connection, lost));
    this.#byUid.set(peer.uid, connection);
    return connection;
  }

  remove(uid: number): void {
    this.#byUid.delete(uid);
  }

  /** Whether the thread blocks instead of returning to its event loop: all it sends goes at once. */
  get synchronous(): boolean {
    return this.#synchronous;
  }

  /** From here on, until {@link sendByTurns}, all that is sent goes at once. */
  sendAtOnce(): void {
    this.#synchronous = true;
    this.flush();
  }

  /** The event loop is at work again: what is sent goes at the end of each turn. */
  sendByTurns(): void {
    this.#synchronous = false;
  }

  /** Sees to it that this connection is flushed: at once while blocking, else at the end of this turn. */
  markDirty(connection: Connection): void {
    if (this.#synchronous) {
      connection.flush();
      return;
    }
    if (!connection.isDirty) {
      connection.isDirty = true;
      this.#dirty.push(connection);
    }
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    queueMicrotask(() => {
      this.#flushScheduled = false;
      this.flush();
    });
  }

  /** Posts everything that is ready, one packet a peer. */
  flush(): void {
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const connection of dirty) {
      connection.isDirty = false;
      connection.flush();
      const numDropped = connection.takeDropped();
      if (numDropped > 0) this.#listener.dropped(connection, numDropped);
    }
  }

  /** Hands `accept` every packet that has arrived, without the event loop. */
  drain(accept: (connection: Connection, packet: Packet) => void): void {
    for (const connection of this.#byUid.values()) this.drainOne(connection, accept);
  }

  /** The same for one connection. */
  drainOne(connection: Connection, accept: (connection: Connection, packet: Packet) => void): void {
    for (;;) {
      const packet = connection.link?.poll();
      if (packet === undefined) return;
      accept(connection, packet);
    }
  }

  /** Resolves when nothing waits for a link or for credit anywhere. */
  async allReady(): Promise<void> {
    this.flush();
    for (const connection of this.#byUid.values()) {
      await connection.opened;
      await connection.ready();
    }
  }

  /** Turns what waits for a link or for credit into dead letters: their sender is about to end. */
  abandonWaiting(): void {
    for (const connection of this.#byUid.values()) connection.abandonWaiting();
  }

  /** Leaves every connection: their actor has ended. */
  leave(): void {
    for (const connection of this.#byUid.values()) connection.leave();
    this.#byUid.clear();
  }
}
