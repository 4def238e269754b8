import { CreditCounters, creditCountersBytes } from "../mailbox/credit-counters.ts";
import { Queue } from "../mailbox/queue.ts";
import { RecordType } from "../protocol/record.ts";
import type { Link } from "./link.ts";
import { type Packet, readPacket } from "./packet.ts";

/** Packets that microtasks may deliver before the event loop gets a turn, for timers and for other work of this thread. */
const packetsPerTurn = 256;

/** Deliveries since the event loop has last had a turn. */
let numDelivered = 0;

/**
 * A link within one thread: packets pass by reference and arrive in a microtask of their own. A strict link refuses values
 * that cannot be cloned, so that messages that work here work between threads too.
 */
export class MemoryLink implements Link {
  readonly credits: CreditCounters;
  #peer: MemoryLink | undefined;
  #receive: ((packet: Packet) => void) | undefined;
  readonly #inbound = new Queue<Packet>();
  readonly #strict: boolean;
  #scheduled = false;

  private constructor(credits: CreditCounters, strict: boolean) {
    this.credits = credits;
    this.#strict = strict;
  }

  /** Makes both ends of a new link. */
  static pair(strict: boolean): [MemoryLink, MemoryLink] {
    const memory = new ArrayBuffer(creditCountersBytes);
    const left = new MemoryLink(new CreditCounters(memory, 0), strict);
    const right = new MemoryLink(new CreditCounters(memory, 1), strict);
    left.#peer = right;
    right.#peer = left;
    return [left, right];
  }

  post(packet: Packet): void {
    if (this.#peer === undefined) return;
    if (this.#strict) refuseUncloneable(packet);
    this.#peer.#inbound.push(packet);
    this.#peer.#schedule();
  }

  listen(receive: (packet: Packet) => void): void {
    this.#receive = receive;
    this.#schedule();
  }

  poll(): Packet | undefined {
    return this.#inbound.shift();
  }

  close(): void {
    this.#peer = undefined;
    this.#receive = undefined;
  }

  #schedule(): void {
    if (this.#scheduled || this.#receive === undefined || this.#inbound.size === 0) return;
    this.#scheduled = true;
    deliverSoon(() => this.#deliver());
  }

  #deliver(): void {
    this.#scheduled = false;
    for (;;) {
      const packet = this.#receive === undefined ? undefined : this.#inbound.shift();
      if (packet === undefined) return;
      this.#receive?.(packet);
    }
  }
}

/** Delivers in a microtask. Two actors that answer each other for ever go on so that the event loop turns all the same. */
function deliverSoon(deliver: () => void): void {
  if (numDelivered === 0)
    setImmediate(() => {
      numDelivered = 0;
    });
  numDelivered += 1;
  if (numDelivered < packetsPerTurn) queueMicrotask(deliver);
  else setImmediate(deliver);
}

function refuseUncloneable(packet: Packet): void {
  readPacket(packet, ({ type, body }) => {
    if (type < RecordType.started) structuredClone(body);
  });
}
