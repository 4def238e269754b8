import type { Address } from "../protocol/address.ts";
import type { Packet } from "../transport/packet.ts";
import { Connection, type ConnectionLimits, type Lost } from "./connection.ts";

/** Receives the messages that connections could not deliver. */
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

  /** Creates a connection to `peer`, without a link yet. */
  create(peer: Address): Connection {
    const connection = new Connection(peer, this.#limits, (lost) => this.#listener.lost(connection, lost));
    this.#byUid.set(peer.uid, connection);
    return connection;
  }

  remove(uid: number): void {
    this.#byUid.delete(uid);
  }

  /** Whether messages are sent at once, because the thread blocks instead of returning to its event loop. */
  get synchronous(): boolean {
    return this.#synchronous;
  }

  /** Sends every message at once from here on, until {@link sendByTurns}. */
  sendAtOnce(): void {
    this.#synchronous = true;
    this.flush();
  }

  /** Sends messages at the end of each turn of the event loop again. */
  sendByTurns(): void {
    this.#synchronous = false;
  }

  /** Flushes this connection: at once while blocking unless `lazy`, otherwise at the end of this turn. */
  markDirty(connection: Connection, lazy = false): void {
    if (this.#synchronous && !lazy) {
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

  /** Posts everything that is ready, one packet per peer. */
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

  /** Passes every packet that has arrived to `accept`, without the event loop. */
  drain(accept: (connection: Connection, packet: Packet) => void): void {
    for (const connection of this.#byUid.values()) this.drainOne(connection, accept);
  }

  /** Does as {@link drain}, for one connection. */
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

  /** Turns messages that wait for a link or for credit into dead letters, because their sender is about to end. */
  abandonWaiting(): void {
    for (const connection of this.#byUid.values()) connection.abandonWaiting();
  }

  /** Closes every connection because their actor has ended. */
  leave(): void {
    for (const connection of this.#byUid.values()) connection.leave();
    this.#byUid.clear();
  }
}
