import type { Transferable } from "node:worker_threads";
import { type LaneLimits, LaneSender } from "../mailbox/lane-sender.ts";
import type { Address } from "../protocol/address.ts";
import { type LaneIndex, laneIndex } from "../protocol/lane.ts";
import { type Envelope, isCounted, isMessage, type Outgoing } from "../protocol/record.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import type { Link } from "../transport/link.ts";
import { type Packet, PacketWriter, readPacket, singlePacket } from "../transport/packet.ts";

/** A message that did not reach its receiver. */
export interface Lost {
  readonly message: Envelope;
  readonly error?: unknown;
}

/** Limits of each lane on one connection. */
export type ConnectionLimits = readonly [control: LaneLimits, data: LaneLimits, telemetry: LaneLimits];

/** Returns the limits that these settings give each connection. */
export function connectionLimits(settings: MessagingSettings): ConnectionLimits {
  const { window, outboxCapacity, telemetryCapacity } = settings;
  return [
    { window: Number.POSITIVE_INFINITY, capacity: 0, whenFull: "refuse" },
    { window, capacity: outboxCapacity, whenFull: "refuse" },
    { window, capacity: telemetryCapacity, whenFull: "drop-oldest" },
  ];
}

/**
 * One actor's end of its connection to one peer. It gathers the messages of one turn of the event loop into one packet, keeps
 * each lane's limits, and knows at the peer's death which messages the peer never took. It can be written to before its link
 * exists; the packet then waits.
 */
export class Connection {
  readonly peer: Address;
  /** Whether its endpoint will flush it next. */
  isDirty = false;
  #link: Link | undefined;
  #closed = false;
  /** Whether any lane may hold messages that wait for credit. */
  #hasWaiting = false;
  readonly #writer = new PacketWriter();
  #urgent = false;
  readonly #lanes: readonly [LaneSender, LaneSender, LaneSender];
  readonly #onLost: (lost: Lost) => void;
  readonly #readyWaiters: (() => void)[] = [];
  readonly #openWaiters: (() => void)[] = [];

  constructor(peer: Address, limits: ConnectionLimits, onLost: (lost: Lost) => void) {
    this.peer = peer;
    this.#onLost = onLost;
    this.#lanes = [new LaneSender(0, limits[0]), new LaneSender(1, limits[1]), new LaneSender(2, limits[2])];
  }

  /** Resolves when the link is open, or when the peer has ended. */
  get opened(): Promise<void> {
    if (this.#link !== undefined || this.#closed) return Promise.resolve();
    return new Promise((resolve) => this.#openWaiters.push(resolve));
  }

  get link(): Link | undefined {
    return this.#link;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Gives the connection its link to the peer. */
  open(link: Link): void {
    this.#link = link;
    this.#resolve(this.#openWaiters);
  }

  /** Accepts a message or an answer within its lane's limits. Returns whether the next flush sends it. */
  send(message: Outgoing): boolean {
    if (this.#closed) {
      this.#onLost({ message });
      return true;
    }
    const ready = this.#lanes[message.lane].offer(message, this.#link?.credits);
    if (ready === undefined) {
      this.#hasWaiting = true;
      return false;
    }
    this.#writer.append(ready);
    if (message.lane === laneIndex.control && isMessage(message.type)) this.#urgent = true;
    return true;
  }

  /** Appends one of the runtime's own records: unlimited, uncounted, never lost while the peer lives. */
  sendRecord(record: Outgoing, urgent = false): void {
    this.#writer.append(record);
    if (urgent) this.#urgent = true;
  }

  /** Posts everything that is ready as one packet; asks for credit if something must wait. */
  flush(): void {
    const link = this.#link;
    if (link === undefined || this.#closed) return;
    if (this.#hasWaiting) this.#releaseWaiting(link);
    if (!this.#writer.isEmpty) this.#post(link);
    if (this.#lanes[laneIndex.data].numWaiting === 0) this.#resolve(this.#readyWaiters);
  }

  /** Whether a data message would be sent at once. */
  get hasCredit(): boolean {
    return this.#closed || this.#lanes[laneIndex.data].numWaiting === 0;
  }

  /** Resolves when nothing waits for credit any more, or when the peer is gone. */
  ready(): Promise<void> {
    if (this.hasCredit) return Promise.resolve();
    return new Promise((resolve) => this.#readyWaiters.push(resolve));
  }

  /** Counts a message of this lane as taken; returns whether the peer waits for this credit. */
  take(lane: LaneIndex): boolean {
    return this.#link?.credits.take(lane) ?? false;
  }

  /** Returns the number of telemetry messages dropped since the last call. */
  takeDropped(): number {
    return this.#lanes[laneIndex.telemetry].takeDropped();
  }

  /** Reports every message that still waits for the link or for credit as lost, because its sender is about to end. */
  abandonWaiting(): void {
    for (const lane of this.#lanes) {
      const messages = this.#link === undefined ? lane.abandon(undefined) : lane.abandonWaiting();
      for (const message of messages) this.#onLost({ message });
    }
  }

  /** Closes this end because its actor has ended; packets that were posted still arrive. */
  leave(): void {
    this.#closed = true;
    this.#link?.close();
  }

  /** Closes the connection to a peer that has ended, and reports every message that the peer never took. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const lane of this.#lanes) {
      for (const message of lane.abandon(this.#link?.credits)) this.#onLost({ message });
    }
    this.#link?.close();
    this.#resolve(this.#readyWaiters);
    this.#resolve(this.#openWaiters);
  }

  #releaseWaiting(link: Link): void {
    this.#hasWaiting = false;
    for (const lane of this.#lanes) {
      if (lane.numWaiting > 0) this.#releaseLane(lane, link);
      if (lane.numWaiting === 0) continue;
      // The peer may have taken its last message just before the request was written: look once more after it.
      link.credits.askForCredit(lane.index, lane.numTakenToResume);
      this.#releaseLane(lane, link);
      if (lane.numWaiting > 0) this.#hasWaiting = true;
    }
  }

  #releaseLane(lane: LaneSender, link: Link): void {
    for (let next = lane.release(link.credits); next !== undefined; next = lane.release(link.credits))
      this.#writer.append(next);
  }

  #post(link: Link): void {
    const { packet, transfer } = this.#writer.take();
    const urgent = this.#urgent;
    this.#urgent = false;
    try {
      link.post(packet, transfer, urgent);
    } catch {
      this.#postOneByOne(link, packet, transfer, urgent);
    }
  }

  /** Posts the records one by one, because one of them cannot be cloned. */
  #postOneByOne(link: Link, packet: Packet, transfer: readonly Transferable[], urgent: boolean): void {
    readPacket(packet, (record) => {
      try {
        link.post(singlePacket(record), transfersWithin(record.body, transfer), urgent);
      } catch (error) {
        if (isCounted(record.type)) this.#lanes[record.lane].withdraw(record.id, record.body);
        this.#onLost({ message: record, error });
      }
    });
  }

  #resolve(waiters: (() => void)[]): void {
    if (waiters.length === 0) return;
    for (const resolve of waiters.splice(0)) resolve();
  }
}

/** Returns the items of `transfer` that occur in `body`: a port in a transfer list must also be in the message. */
function transfersWithin(body: unknown, transfer: readonly Transferable[]): Transferable[] {
  if (transfer.length === 0) return [];
  const reachable = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || reachable.has(value)) return;
    reachable.add(value);
    if (ArrayBuffer.isView(value)) reachable.add(value.buffer);
    else for (const part of Object.values(value)) visit(part);
  };
  visit(body);
  return transfer.filter((item) => reachable.has(item));
}
